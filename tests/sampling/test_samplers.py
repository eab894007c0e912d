"""What every sampler keeps; a new one is tested by being in the table."""

import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.errors import DataError
from keypatch.patches.patch_set import Classes, classes_of
from keypatch.sampling import SAMPLERS, AdaptivePairs, Draw, Sampler

VARIANTS = {
    "uniform": AdaptivePairs(32, lam=0.0),
    "few": AdaptivePairs(32, candidates="few"),
    "memory": AdaptivePairs(32, candidates="memory"),
    "real": AdaptivePairs(32, generate=0),
}


@pytest.fixture(params=[*SAMPLERS, *VARIANTS])
def sampler(request: pytest.FixtureRequest) -> Sampler:
    made: Sampler = VARIANTS.get(request.param) or SAMPLERS[request.param](pairs=32)
    return made


def same(a: Draw, b: Draw) -> bool:
    return np.array_equal(a.indices, b.indices) and np.array_equal(a.classes, b.classes) and turned(a) == turned(b)


def turned(drawn: Draw) -> list[list[float]] | None:
    return None if drawn.turns is None else drawn.turns.tolist()


def test_batch_k_needs_no_batch_before_it_and_depends_on_seed_and_step(sampler: Sampler, classes: Classes) -> None:
    forwards = [sampler.draw(classes, 3, step) for step in range(5)]
    assert same(sampler.draw(classes, 3, 4), forwards[4])
    assert not same(forwards[0], forwards[1])
    assert not same(sampler.draw(classes, 4, 0), forwards[0])


def test_rows_show_their_class_in_different_patches(
    sampler: Sampler, classes: Classes, owner: NDArray[np.int64]
) -> None:
    for step in range(20):
        drawn = sampler.draw(classes, 1, step)
        assert drawn.indices.dtype == drawn.classes.dtype == np.int64
        assert len(drawn.indices) == len(drawn.classes) == sampler.pairs == 32
        for i, patches in enumerate(drawn.indices):
            there = patches[:2] if type(sampler).__name__ == "RandomTriplets" else patches[patches >= 0]
            assert len(there) >= 2 and (owner[there] == drawn.classes[i]).all()
            turns = np.zeros(len(there)) if drawn.turns is None else drawn.turns[i, : len(there)]
            assert len(set(zip(there.tolist(), turns.tolist(), strict=True))) == len(there)


def test_points_differ_unless_several_patches_are_asked_for(sampler: Sampler, classes: Classes) -> None:
    points = len(set(sampler.draw(classes, 1, 0).classes.tolist()))
    assert points < 32 if type(sampler).__name__ == "SeveralPerPoint" else points == 32


def test_a_set_too_small_for_one_batch_is_refused(sampler: Sampler) -> None:
    small = classes_of(np.repeat(np.arange(10), 3), "made")
    with pytest.raises(DataError, match=r"--set sampler\.pairs=10"):
        sampler.check(small)

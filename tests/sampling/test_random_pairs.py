import numpy as np
import pytest

from keypatch.errors import DataError
from keypatch.patches.patch_set import Classes, classes_of
from keypatch.sampling import RandomPairs


@pytest.fixture
def classes() -> Classes:
    sizes = np.random.default_rng(0).integers(1, 7, 300)
    return classes_of(np.repeat(np.arange(300) * 7 - 50, sizes), "made")  # ids neither dense nor positive


def class_of(classes: Classes) -> dict[int, int]:
    return {
        int(member): k
        for k in range(classes.count)
        for member in classes.members[classes.starts[k] : classes.starts[k + 1]]
    }


def test_a_batch_has_distinct_classes_and_two_different_patches_of_each(classes: Classes) -> None:
    owner = class_of(classes)
    for step in range(20):
        batch = RandomPairs(64).batch(classes, seed=1, step=step)
        assert batch.shape == (64, 2)
        assert all(owner[a] == owner[b] and a != b for a, b in batch.tolist())
        assert len({owner[a] for a in batch[:, 0].tolist()}) == 64


def test_batch_k_needs_no_batch_before_it_and_depends_on_seed_and_step(classes: Classes) -> None:
    sampler = RandomPairs(32)
    forwards = [sampler.batch(classes, 3, step) for step in range(5)]
    assert np.array_equal(sampler.batch(classes, 3, 4), forwards[4])
    assert not np.array_equal(forwards[0], forwards[1])
    assert not np.array_equal(sampler.batch(classes, 4, 0), forwards[0])


def test_every_ordered_pair_of_a_class_comes_up_equally_often() -> None:
    classes = classes_of(np.repeat([5, 9], 3), "made")
    counts = np.zeros((6, 6))
    for step in range(3000):
        batch = RandomPairs(2).batch(classes, 0, step)
        counts[batch[:, 0], batch[:, 1]] += 1
    wanted = np.kron(np.eye(2), 1 - np.eye(3)) * 500
    assert np.abs(counts - wanted).max() < 5 * np.sqrt(500)  # five standard deviations of a count


def test_a_set_too_small_for_one_batch_is_refused_with_the_number_that_fits() -> None:
    classes = classes_of(np.repeat(np.arange(10), 2), "made")
    with pytest.raises(DataError, match=r"only 10 with two patches.*sampler\.pairs=10"):
        RandomPairs(11).batch(classes, 0, 0)
    with pytest.raises(DataError, match="at least 2 pairs"):
        RandomPairs(1).batch(classes, 0, 0)

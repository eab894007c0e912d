"""Several sets as one: no index and no class is confused."""

from pathlib import Path

import cv2
import numpy as np
import pytest

from keypatch.errors import DataError
from keypatch.patches.patch_set import PatchSet, PatchSource, join_sets


def noise(name: str, point_id: list[int], side: int = 64, seed: int = 0, folder: Path | None = None) -> PatchSet:
    patches = np.random.default_rng(seed).integers(0, 256, (len(point_id), side, side)).astype(np.uint8)
    return PatchSet(name, patches, np.array(point_id, np.int64), folder=folder)


ONE = noise("one", [7, 7, 1, 1], seed=1)
TWO = noise("two", [7, 7, 7, 900, 1, 1], seed=2)


def test_one_set_stays_itself() -> None:
    assert join_sets([ONE]) is ONE


def test_the_same_id_in_two_sets_is_two_classes() -> None:
    joined = join_sets([ONE, TWO])
    assert joined.name == "one+two" and len(joined) == 10 and joined.side == 64
    classes = joined.classes()
    members = [set(classes.members[a:b].tolist()) for a, b in zip(classes.starts, classes.starts[1:], strict=False)]
    assert sorted(members, key=min) == [{0, 1}, {2, 3}, {4, 5, 6}, {8, 9}]
    assert classes.skipped == 1
    assert joined.point_id.dtype == np.int64 and len(np.unique(joined.point_id)) == 5


def test_take_finds_each_patch_in_its_set() -> None:
    joined = join_sets([ONE, TWO])
    everything = np.concatenate([ONE.patches, TWO.patches])
    indices = np.random.default_rng(0).integers(0, 10, (5, 2, 3))
    assert np.array_equal(joined.take(indices), everything[indices])
    assert joined.take(np.zeros((0, 2), np.int64)).shape == (0, 2, 64, 64)
    assert np.array_equal(joined.take(np.array(4)), TWO.patches[0])


@pytest.mark.parametrize("index", [-1, 10])
def test_an_index_outside_is_an_error_as_in_an_array(index: int) -> None:
    with pytest.raises(IndexError, match=r"0\.\.9"):
        join_sets([ONE, TWO]).take(np.array([0, index]))


def test_larger_patches_are_reduced_to_the_smallest_side() -> None:
    large = noise("large", [0, 0, 1, 1], side=65, seed=3)
    joined = join_sets([large, ONE])
    assert joined.side == 64
    taken = joined.take(np.array([5, 2, 0]))
    assert np.array_equal(taken[0], ONE.patches[1])
    for k, index in ((1, 2), (2, 0)):
        assert np.array_equal(taken[k], cv2.resize(large.patches[index], (64, 64), interpolation=cv2.INTER_LINEAR))


def test_sets_of_one_class_each_are_enough_together() -> None:
    joined: PatchSource = join_sets([noise("a", [5, 5]), noise("b", [5, 5, 5])])
    assert joined.classes().count == 2


def test_no_set_and_one_folder_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No patch set was given"):
        join_sets([])
    one = noise("a", [1, 1, 2, 2], folder=tmp_path)
    again = noise("b", [1, 1, 2, 2], folder=tmp_path / "x" / "..")
    with pytest.raises(DataError, match="was given twice"):
        join_sets([one, ONE, again])

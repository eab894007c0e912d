"""Patches, classes and pairs as plain values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keypatch.errors import DataError
from keypatch.patches.patch_set import PatchSet, classes_of


def small(point_id: list[int], side: int = 4) -> PatchSet:
    n = len(point_id)
    patches = np.arange(n, dtype=np.uint8)[:, None, None] * np.ones((1, side, side), np.uint8)
    return PatchSet("small", patches, np.array(point_id, np.int64))


def test_take_gives_patches_in_the_shape_of_the_indices() -> None:
    patches = small([1, 1, 2, 2])
    assert len(patches) == 4 and patches.side == 4
    taken = patches.take(np.array([[3, 0], [1, 1], [2, 3]]))
    assert taken.shape == (3, 2, 4, 4) and taken.dtype == np.uint8
    assert taken[:, :, 0, 0].tolist() == [[3, 0], [1, 1], [2, 3]]
    assert patches.take(np.zeros((0, 2), np.int64)).shape == (0, 2, 4, 4)


def test_what_is_taken_is_a_copy() -> None:
    patches = small([1, 1])
    patches.take(np.array([0]))[:] = 99
    assert patches.patches[0, 0, 0] == 0


@given(st.lists(st.integers(-3, 6), min_size=1, max_size=40))
def test_classes_are_the_points_with_two_patches_or_more(point_id: list[int]) -> None:
    by_hand = {p: [i for i, q in enumerate(point_id) if q == p] for p in sorted(set(point_id))}
    kept = [members for members in by_hand.values() if len(members) > 1]
    if len(kept) < 2:
        with pytest.raises(DataError, match=f"{len(kept)} of {len(by_hand)} points have two or more patches"):
            classes_of(np.array(point_id), "x")
        return
    classes = classes_of(np.array(point_id), "x")
    assert classes.count == len(kept) and classes.skipped == len(by_hand) - len(kept)
    ranges = zip(classes.starts, classes.starts[1:], strict=False)
    assert [classes.members[a:b].tolist() for a, b in ranges] == kept
    assert classes.members.dtype == classes.starts.dtype == np.int64


def test_a_point_with_one_patch_is_left_out_and_counted() -> None:
    classes = small([5, 5, 9, 2, 2]).classes()
    assert (classes.count, classes.skipped) == (2, 1)
    assert classes.members.tolist() == [3, 4, 0, 1]


@pytest.mark.parametrize(
    ("patches", "point_id", "message"),
    [
        (np.zeros((2, 4, 4), np.float32), [1, 1], "must be uint8"),
        (np.zeros((2, 4, 5), np.uint8), [1, 1], "must be uint8 of shape"),
        (np.zeros((4, 4), np.uint8), [1, 1], "must be uint8 of shape"),
        (np.zeros((2, 4, 4), np.uint8), [1], "2 patches but 1 values of point_id"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(patches: np.ndarray, point_id: list[int], message: str) -> None:
    with pytest.raises(DataError, match=message):
        PatchSet("bad", patches, np.array(point_id))

"""Matches as a value."""

import numpy as np
import pytest

from keypatch.errors import KeypatchError
from keypatch.matching.matches import Matches


def test_arrays_become_int32_and_float32() -> None:
    matches = Matches([[0, 5], [2, 1]], [0.5, 0.75])  # type: ignore[arg-type]
    assert matches.indices.dtype == np.int32 and matches.scores.dtype == np.float32
    assert len(matches) == 2


def test_nothing_can_be_taken_from_nothing() -> None:
    empty = Matches(np.empty((0, 2), np.int32), np.empty(0, np.float32))
    assert len(empty.take([])) == 0
    assert empty.swapped().indices.shape == (0, 2)


def test_swapped_matches_are_ordered_by_the_other_photo() -> None:
    matches = Matches([[0, 9], [1, 4], [5, 4]], [0.1, 0.2, 0.3], True, "F", np.eye(3))  # type: ignore[arg-type]
    swapped = matches.swapped()
    assert swapped.indices.tolist() == [[4, 1], [4, 5], [9, 0]]
    assert swapped.scores == pytest.approx([0.2, 0.3, 0.1])
    assert swapped.verified and swapped.model == "F" and swapped.matrix is None


@pytest.mark.parametrize(
    ("indices", "scores", "part"),
    [
        ([[0, 1]], [0.1, 0.2], "1 matches"),
        ([[0, -1]], [0.1], "-1"),
        ([[0, 2**31]], [0.1], "2147483648"),
    ],
)
def test_impossible_matches_are_refused(indices: list[list[int]], scores: list[float], part: str) -> None:
    with pytest.raises(KeypatchError, match=part):
        Matches(indices, scores)  # type: ignore[arg-type]

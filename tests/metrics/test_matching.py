"""Areas and shares of error lists: against figures of others, a fine sum, and what always holds."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keypatch.errors import KeypatchError
from keypatch.metrics import recall_area, share_within

error_lists = st.lists(st.one_of(st.floats(0, 20), st.just(math.inf)), min_size=1, max_size=12)


@pytest.mark.parametrize("number", range(4))
def test_areas_are_those_of_glue_factory(reference: Path, number):
    figures = np.load(reference / "auc_embedding.npz")
    found = recall_area(figures[f"auc_errors_{number}"], [1, 3, 5])
    np.testing.assert_allclose(found, figures[f"auc_at_1_3_5_{number}"], rtol=0, atol=5.1e-5)  # rounded to 4 decimals


@given(st.lists(st.one_of(st.integers(0, 80).map(lambda n: n / 8), st.just(math.inf)), min_size=1, max_size=8))
def test_the_area_is_that_under_straight_lines(errors):
    """A sum over a fine grid, with the curve of errors below the threshold drawn by numpy."""
    below = sorted(error for error in errors if error < 5)
    heights = np.arange(len(below) + 1) / len(errors)
    grid = (np.arange(5 * 4096) + 0.5) / 4096  # the corners lie between the grid's points
    curve = np.interp(grid, np.maximum.accumulate([0, *below]) + 1e-9 * np.arange(len(below) + 1), heights)
    assert recall_area(errors, [5])[0] == pytest.approx(curve.mean(), abs=1e-6)


def test_by_hand():
    assert recall_area([1, 2], [4]) == [pytest.approx((0.25 + 0.75 + 2 * 1) / 4)]
    assert recall_area([0, 0], [1]) == [1]
    assert recall_area([math.inf, 4], [4]) == [0]  # an error equal to the threshold is beyond it
    assert share_within([1, 2, math.inf, 3], [1, 2.5, 3]) == [0.25, 0.5, 0.75]  # here it counts


@given(error_lists, st.randoms())
def test_areas_lie_between_nothing_and_the_share_and_know_no_order(errors, random):
    thresholds = [1, 5, 10]
    areas = recall_area(errors, thresholds)
    assert all(0 <= area <= share <= 1 for area, share in zip(areas, share_within(errors, thresholds), strict=True))
    shuffled = random.sample(errors, len(errors))
    assert recall_area(shuffled, thresholds) == areas
    assert recall_area([*errors, math.inf], thresholds) <= areas  # a failure never helps


def test_without_errors_there_is_no_score():
    assert all(map(math.isnan, recall_area([], [1, 5]) + share_within([], [1, 5])))
    assert recall_area([1], []) == share_within([1], []) == []


@pytest.mark.parametrize("score", [recall_area, share_within])
@pytest.mark.parametrize(
    ("errors", "thresholds", "sentence"),
    [
        ([math.nan], [1], "never nan"),
        ([-1], [1], "non-negative"),
        ([[1]], [1], "a list of non-negative numbers"),
        ([1], [0], "above 0 and finite"),
        ([1], [math.inf], "above 0 and finite"),
    ],
)
def test_wrong_input_is_named(score, errors, thresholds, sentence):
    with pytest.raises(KeypatchError, match=sentence):
        score(errors, thresholds)

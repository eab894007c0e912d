"""Axes of figures: round numbers, and places that values can be read back from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keypatch.reports.figures import Axis, fitted

NUMBERS = st.floats(-1e6, 1e6)


def test_places_go_from_the_start_to_the_end_and_not_beyond() -> None:
    axis = Axis("", 0.0, 10.0)
    assert axis.places(np.array([0, 5, 10, 99, -1]), 100, 0).tolist() == [100, 50, 0, 0, 100]
    log = Axis("", 0.01, 1.0, log=True)
    assert np.allclose(log.places(np.array([0.01, 0.1, 1.0, 0.0]), 0, 2), [0, 1, 2, 0])


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis("", 0, 1, percent=True), ["0", "20", "40", "60", "80", "100"]),
        (Axis("", 1e-4, 1, log=True, percent=True), ["0.01", "0.1", "1", "10", "100"]),
        (Axis("", 0, 50_000), ["0", "10k", "20k", "30k", "40k", "50k"]),
        (Axis("", 0.7, 0.95), ["0.7", "0.75", "0.8", "0.85", "0.9", "0.95"]),
    ],
)
def test_ticks_are_round(axis: Axis, ticks: list[str]) -> None:
    assert [axis.text(tick) for tick in axis.ticks()] == ticks


@given(st.lists(NUMBERS, min_size=1))
def test_an_axis_holds_all_values_and_a_few_ticks(values: list[float]) -> None:
    axis = fitted("", np.array(values))
    slack = 1e-6 * max(1.0, *map(abs, values))
    assert axis.low - slack <= min(values) and max(values) <= axis.high + slack and axis.low < axis.high
    assert 2 <= len(axis.ticks()) <= 12


def test_an_axis_may_have_a_least_length() -> None:
    assert fitted("", np.array([0.98, 1.0]), span=0.1) == Axis("", 0.9, 1.0)


@pytest.mark.parametrize("values", [[], [np.nan], [np.inf, -np.inf]])
def test_without_a_finite_value_there_is_still_an_axis(values: list[float]) -> None:
    axis = fitted("", np.array(values, np.float64))
    assert (axis.low, axis.high) == (0.0, 1.0)

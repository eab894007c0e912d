"""Figures: where lines are drawn, and that they can be told apart."""

import json
from itertools import pairwise

import numpy as np
import pytest

from keypatch.metrics import Curve
from keypatch.reports.figures import CurveOf, Figure, curve_figure, curve_title, line_class, similarity_axes


def axes_of(figure: Figure) -> dict:
    return json.loads(figure.axes)


def places_of(figure: Figure) -> np.ndarray:
    return np.array([pair.split(",") for pair in figure.lines[0].points.split()], float)


@pytest.mark.parametrize(
    ("name", "title"),
    [("roc.m50_5", "ROC, m50_5"), ("mma", "Mean matching accuracy"), ("other.thing", "other, thing")],
)
def test_a_curve_is_called_by_its_kind_and_what_it_is_of(name: str, title: str) -> None:
    assert curve_title(name) == title


def test_the_values_of_a_curve_can_be_read_back_from_its_line() -> None:
    x, y = np.linspace(0, 1, 30), np.linspace(0.5, 1, 30) ** 2
    figure = curve_figure("pr.a", [CurveOf(0, "a", Curve(x, y))])
    axes, places = axes_of(figure), places_of(figure)
    for place, axis, values in zip(places.T, (axes["x"], axes["y"]), (x, y), strict=True):
        part = (place - axis["start"]) / (axis["end"] - axis["start"])
        assert np.allclose(axis["low"] + part * (axis["high"] - axis["low"]), values, atol=1e-4)


def test_roc_is_logarithmic_and_a_rate_of_zero_begins_at_its_left_end() -> None:
    curve = Curve(np.array([0, 0, 0, 0.002, 0.5, 1.0]), np.array([0, 0.1, 0.2, 0.4, 0.9, 1.0]))
    figure = curve_figure("roc.a", [CurveOf(0, "a", curve)])
    axes, places = axes_of(figure), places_of(figure)
    assert axes["x"]["log"] and axes["x"]["low"] == 0.001
    assert len(places) == 4 and places[0, 0] == axes["x"]["start"] and places[0, 1] < axes["y"]["start"]


def test_a_long_curve_is_thinned() -> None:
    x = np.linspace(0, 1, 100_000)
    assert len(places_of(curve_figure("pr.a", [CurveOf(0, "a", Curve(x, 1 - x))]))) <= 160


def test_shares_begin_at_zero_where_figures_are_compared_and_noise_is_not_blown_up() -> None:
    y = np.array([0.97, 0.98])
    assert axes_of(curve_figure("mma.boat", [CurveOf(0, "a", Curve(np.array([1, 2]), y))]))["y"]["low"] == 0
    turned = axes_of(curve_figure("share.cat", [CurveOf(0, "a", Curve(np.array([15, 30]), y))]))["y"]
    assert turned["high"] - turned["low"] == pytest.approx(0.1)


def test_the_first_32_descriptors_differ_and_neighbours_in_colour_and_in_dashes() -> None:
    classes = [line_class(number).split()[1:] for number in range(32)]
    assert len({tuple(pair) for pair in classes}) == 32
    for first, second in pairwise(classes[:8]):
        assert first[0] != second[0] and first[1] != second[1]


def test_densities_share_axes_that_leave_out_what_is_empty() -> None:
    x = np.linspace(-1, 1, 41)
    axes = similarity_axes([Curve(x, np.where(x > 0.3, 2.0, 0.0)), Curve(x, np.where(x > 0.6, 4.0, 0.0))])
    assert (axes[0].low, axes[0].high) == (0.25, 1.0) and axes[1].low == 0 and axes[1].high >= 4

"""Figures that are functions: their curves are the formulas of the papers, point by point."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy import integrate, special

from keypatch.errors import KeypatchError
from keypatch.files import read_json
from keypatch.losses import Hybrid, InnerProduct
from keypatch.studies.papers.drawing import Line, Panel
from keypatch.studies.papers.functions import (
    FUNCTIONS,
    gor_figure_2,
    hynet_figure_1,
    hynet_figure_5b,
    hynet_slopes,
    printed_statistics,
    scale_aware_figure_4,
    sdgmnet_figure_2,
    slope,
)
from keypatch.studies.papers.study import study_paper


def _line(panel: Panel, start: str) -> Line:
    return next(line for line in panel.lines if line.label.startswith(start))


def test_slopes_of_s_and_d_are_equation_4() -> None:
    panel = hynet_slopes()
    theta = np.asarray(_line(panel, "s").x)
    assert np.allclose(_line(panel, "s").y, np.sin(theta), atol=1e-9)
    assert np.allclose(_line(panel, "d").y, np.sin(theta) / np.sqrt(2 * (1 - np.cos(theta))), atol=1e-7)


def test_slope_of_the_hybrid_similarity_lies_between_those_of_d_and_s() -> None:
    (panel,) = hynet_figure_5b()
    theta = np.asarray(panel.lines[0].x)
    for alpha in (0.5, 1.0, 2.0, 5.0):
        expected = alpha * np.sin(theta) + np.cos(theta / 2)
        found = np.asarray(_line(panel, f"alpha = {alpha:g}").y)
        assert np.allclose(found, expected / expected.max(), atol=1e-4)
    d, two, s = (np.asarray(_line(panel, name).y) for name in ("alpha = 0", "alpha = 2", "alpha to infinity"))
    early = theta < 0.5
    assert np.all(d[early] > two[early]) and np.all(two[early] > s[early])
    assert slope(Hybrid(2.0, eps=0.0), np.array([1.0])) == pytest.approx(2 * math.sin(1) + math.cos(0.5))
    assert slope(InnerProduct(), np.array([1.0])) == pytest.approx(math.sin(1))


def test_steps_on_unit_descriptors_are_across_them_and_on_raw_ones_are_not() -> None:
    for panel in hynet_figure_1():
        along, across, step = (_line(panel, name) for name in ("along", "across", "step"))
        lengths = np.hypot(np.subtract(along.x, along.low), np.subtract(along.y, along.high))
        assert np.all(lengths < 1e-9) == ("unit" in panel.title), panel.title
        # equation 3: along + across is the whole step, and across is a right angle to the descriptor
        assert np.allclose(np.add(along.x, across.x), np.add(step.x, step.low))
        moved = np.array([np.subtract(across.x, across.low), np.subtract(across.y, across.high)])
        assert np.allclose((moved * np.array([across.low, across.high])).sum(0), 0, atol=1e-9)


def test_a_positive_pair_is_turned_together_and_a_negative_one_apart() -> None:
    for panel in hynet_figure_1():
        step = _line(panel, "step")
        before = np.arctan2(step.high, step.low)
        after = np.arctan2(step.y, step.x)
        narrower = abs(after[1] - after[0]) < abs(before[1] - before[0])
        assert narrower == ("positive" in panel.title), panel.title


def test_density_of_inner_products_is_proposition_1() -> None:
    (panel,) = gor_figure_2((4, 128))
    for dim, line in zip((4, 128), panel.lines, strict=True):
        s, y = np.asarray(line.x), np.asarray(line.y)
        inside = np.abs(s) < 0.999
        expected = (1 - s[inside] ** 2) ** ((dim - 1) / 2 - 1) / special.beta((dim - 1) / 2, 0.5)
        assert np.allclose(y[inside], expected, rtol=1e-9)
        assert integrate.trapezoid(y, s) == pytest.approx(1, abs=1e-3)
        assert integrate.trapezoid(y * s**2, s) == pytest.approx(1 / dim, rel=1e-2)  # proposition 2


def test_modulation_is_equations_9_to_11_with_the_printed_statistics() -> None:
    state = {name: float(value) for name, value in printed_statistics().items()}
    assert state["mean_positive"] == 0.826 and state["std_r"] == 0.218 and state["power_negative"] == 294
    positive, negative, coupled, product = sdgmnet_figure_2()
    theta = np.asarray(positive.lines[0].x)
    for panel, name in ((positive, "positive"), (negative, "negative")):
        blur = math.pi / 6 + state[f"std_{name}"]
        expected = np.exp(-((theta - state[f"mean_{name}"]) ** 2) / (2 * blur**2))
        assert np.allclose(panel.lines[0].y, expected)
    r = np.asarray(coupled.lines[0].x)
    cdf = special.ndtr((r - state["mean_r"]) / state["std_r"])
    assert np.allclose(coupled.lines[0].y, np.where(cdf > 0.6, cdf, 0), atol=1e-9)
    assert product.map is not None
    # "does not turn the spotlight on hardest triplets"; easy ones, at the bottom left, are eliminated
    assert product.map[0, 0] == 0 and 0 < product.map[-1, -1] < 0.5 * product.map.max()


def test_slopes_of_the_triplet_losses_are_equations_76_to_78() -> None:
    log, sse, hinge = scale_aware_figure_4()
    rho = np.asarray(hinge.lines[0].x)
    for delta in (1.0, 2.0, 5.0, 10.0):
        assert np.allclose(_line(log, f"delta = {delta:g}").y, -1 / (np.exp(delta * rho) + 1))
        s = 1 / (1 + np.exp(delta * rho))
        assert np.allclose(_line(sse, f"delta = {delta:g}").y, -2 * s**2 * (1 - s))  # 77 as it must be
    away = np.abs(rho) > 1e-9
    assert np.array_equal(np.asarray(hinge.lines[0].y)[away], np.where(rho < 0, -1.0, 0.0)[away])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_figure_without_training_is_written_as_page_picture_and_values(name: str, tmp_path: Path) -> None:
    page = study_paper(name, out=tmp_path)
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    text = (tmp_path / "paper.md").read_text(encoding="utf-8")
    assert page.plan.title in text and "figure.png" in text
    values = read_json(tmp_path / "paper.json")
    assert values["name"] == name and len(values["panels"]) == len(page.made.panels)
    assert values["panels"][0]["title"] == page.made.panels[0].title or "title" not in values["panels"][0]


def test_data_for_a_function_is_refused() -> None:
    with pytest.raises(KeypatchError, match="Leave out --data"):
        study_paper("gor-fig-2", "embedded")

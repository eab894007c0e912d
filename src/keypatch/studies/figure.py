"""The figures of studies, drawn by matplotlib: scores on the way of a run, and against what a sweep varies."""

import math
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.errors import MissingExtra
from keypatch.files import write_atomically
from keypatch.reports.published import published_recipes
from keypatch.studies.table import Column, Line, Table, heading, lines_in_order, mean_over_seeds, number_of
from keypatch.studies.verdicts import Compared

BEST = 12  # more curves than these and those of the papers nobody can tell apart
COLOURS = 10  # of matplotlib's tab10; the next ones repeat them with another stroke and marker
STYLES = (("-", "o"), ("--", "s"), (":", "^"))
LEGEND = 120  # letters in a row of the legend
TICKS = 8
COLOUR_OF_VERDICT = {"seen": "C2", "contradicted at this budget": "C3"}  # green and red; grey: not told apart
LOGARITHMIC = 20  # times the smallest number: from there on the axis is logarithmic


def draw_curves(path: Path, table: Table) -> None:
    """A row of panels per test set: its headline score against pairs and against minutes, means over the seeds.

    Of many recipes the best are drawn, and those with a published figure; then the title says so.
    """
    make_figure = _matplotlib()
    if not table.lines:
        return
    count, lines = len(table.headlines), drawn_lines(table)
    in_a_row = max(1, LEGEND // max(6 + len(line.label) for line in lines))  # names, each with its stroke
    height = 1 + 3.2 * count + 0.22 * math.ceil(len(lines) / in_a_row)
    figure = make_figure(figsize=(11, height), layout="constrained")
    if len(lines) < len(table.lines):
        figure.suptitle(f"The {BEST} best of {len(table.lines)} recipes, and those with a published figure")
    panels = figure.subplots(count, 2, sharex="col", sharey="row", squeeze=False)
    for (left, right), column in zip(panels, table.headlines, strict=True):
        for number, line in enumerate(lines):
            stroke, marker = STYLES[number // COLOURS]
            style = {"color": f"C{number % COLOURS}", "linestyle": stroke, "marker": marker, "markersize": 4}
            pairs, minutes, scores = _curve(line, column)
            left.plot(pairs, scores, label=line.label, **style)
            right.plot(minutes, scores, **style)
        _finish_panels(left, right, column)
    panels[-1][0].set_xlabel("pairs")
    panels[-1][1].set_xlabel("minutes of training")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=in_a_row, frameon=False)
    _save(figure, path)


def draw_sweep(path: Path, table: Table) -> None:
    """A panel per test set, its headline score against the first varied path that has several numbers.

    A curve is what agrees in all else, its dots are the seeds and the line their mean; what has no such value is a
    level line. Where nothing varies by numbers, the arms stand below each other.
    """
    make_figure = _matplotlib()
    if not table.lines:
        return
    lines = lines_in_order(table)
    across = find_axis(lines)
    if across is None:
        figure = make_figure(figsize=(4 + 4 * len(table.headlines), 1 + 0.3 * len(lines)), layout="constrained")
        panels = figure.subplots(1, len(table.headlines), sharey=True, squeeze=False)[0]
        for panel, column in zip(panels, table.headlines, strict=True):
            _draw_arms(panel, lines, column)
    else:
        curves = curves_of(lines, across)
        in_a_row = max(1, LEGEND // max(6 + len(name) for name in curves))
        height = 4 + 0.22 * math.ceil(len(curves) / in_a_row)
        figure = make_figure(figsize=(max(8.0, 5.5 * len(table.headlines)), height), layout="constrained")
        panels = figure.subplots(1, len(table.headlines), squeeze=False)[0]
        for panel, column in zip(panels, table.headlines, strict=True):
            for number, (name, curve) in enumerate(curves.items()):
                _draw_curve(panel, name, curve, across, column, number)
            _finish_axis(panel, across, {line.varied[across] for line in lines if across in line.varied})
        if len(curves) > 1:
            figure.legend(
                *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=in_a_row, frameon=False
            )
    for panel, column in zip(panels, table.headlines, strict=True):
        panel.set_title(_titled(column), loc="left", fontsize="medium")
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def draw_differences(path: Path, compared: Sequence[Compared]) -> None:
    """A panel per column: what each method gains over its control, every seed, the mean and its 95 % interval."""
    figure = _matplotlib()(figsize=(13, 1.2 + 0.42 * len(compared)), layout="constrained")
    panels = figure.subplots(1, len(compared[0].differences), sharey=True, squeeze=False)[0]
    for number, panel in enumerate(panels):
        for place, each in enumerate(compared):
            difference = each.differences[number]
            colour = COLOUR_OF_VERDICT.get(each.verdict, "0.5")
            low, high = (100 * end for end in difference.interval)
            panel.plot([low, high], [place, place], "-", color=colour)
            panel.plot([100 * gain for gain in difference.gains], [place] * len(difference.gains), ".", color=colour)
            panel.plot([100 * difference.mean], [place], "o", color=colour)
        panel.axvline(0, color="0.3", linewidth=0.8)
        column = heading(compared[0].differences[number].column)
        panel.set_title(f"gain, {column} (right is better)", loc="left", fontsize="medium")
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_yticks(range(len(compared)), [f"{each.method}\nagainst {each.control}" for each in compared])
    panels[0].tick_params(axis="y", labelsize="small")
    panels[0].set_ylim(len(compared) - 0.5, -0.5)
    _save(figure, path)


def find_axis(lines: Sequence[Line]) -> str | None:
    """The first varied path whose values are all numbers, several of them in one curve; None where there is none."""
    for path in dict.fromkeys(path for line in lines for path in line.varied):
        values = [line.varied[path] for line in lines if path in line.varied]
        are_numbers = all(math.isfinite(number_of(value)) for value in values)
        if are_numbers and any(len(curve) > 1 for curve in curves_of(lines, path).values()):
            return path
    return None


def curves_of(lines: Sequence[Line], across: str) -> dict[str, list[Line]]:
    """By what they agree in but for the path `across`, in the order of its numbers."""
    curves = dict[str, list[Line]]()
    for line in lines:
        others = [f"{path}={value}" for path, value in line.varied.items() if path != across]
        curves.setdefault(" ".join([line.base, *others]), []).append(line)
    return {
        name: sorted(curve, key=lambda line: number_of(line.varied.get(across, ""))) for name, curve in curves.items()
    }


def _draw_curve(panel: Any, name: str, curve: Sequence[Line], across: str, column: Column, number: int) -> None:
    stroke, marker = STYLES[number // COLOURS % len(STYLES)]
    style = {"color": f"C{number % COLOURS}", "linestyle": stroke}
    placed = [line for line in curve if across in line.varied]
    if not placed:
        panel.axhline(100 * mean_over_seeds(curve[0].scores(column)), label=name, **{**style, "linestyle": "-."})
        return
    numbers = [number_of(line.varied[across]) for line in placed]
    scores = [[100 * score for score in line.scores(column)] for line in placed]
    panel.plot(numbers, [np.mean(each) for each in scores], label=name, marker=marker, markersize=4, **style)
    if any(len(each) > 1 for each in scores):
        ends = [min(each) for each in scores], [max(each) for each in scores]
        panel.fill_between(numbers, *ends, color=style["color"], alpha=0.15, linewidth=0)
        for x, each in zip(numbers, scores, strict=True):
            panel.plot([x] * len(each), each, "o", color=style["color"], markersize=2.5)


def _finish_axis(panel: Any, across: str, values: Collection[str]) -> None:
    """Ticks at the values, where they are few."""
    numbers = sorted({number_of(value): value for value in values}.items())
    smallest, largest = numbers[0][0], numbers[-1][0]
    if smallest > 0 and largest >= LOGARITHMIC * smallest:
        panel.set_xscale("log")
    if len(numbers) <= TICKS:
        panel.set_xticks([number for number, _ in numbers], [value for _, value in numbers])
        panel.set_xticks([], minor=True)
    panel.set_xlabel(across)


def _draw_arms(panel: Any, lines: Sequence[Line], column: Column) -> None:
    for place, line in enumerate(lines):
        scores = [100 * score for score in line.scores(column)]
        panel.plot([min(scores), max(scores)], [place, place], "-", color="C0", alpha=0.4)
        panel.plot(scores, [place] * len(scores), ".", color="C0", markersize=4)
        panel.plot([np.mean(scores)], [place], "o", color="C0", markersize=6)
    panel.set_yticks(range(len(lines)), [line.label for line in lines])
    panel.set_ylim(len(lines) - 0.5, -0.5)


def _matplotlib() -> Any:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra.of("The figure was not drawn because it needs matplotlib", "plot") from error
    return Figure


def _save(figure: Any, path: Path) -> None:
    with write_atomically(path) as file:
        figure.savefig(file, format="png", dpi=130)


def drawn_lines(table: Table) -> list[Line]:
    """The best and those with a published figure, best first: at most as many as there are colours and styles."""
    return [line for place, line in enumerate(table.lines) if place < BEST or line.label in published_recipes()]


def _curve(line: Line, column: Column) -> tuple[Any, Any, Any]:
    """Pairs, minutes and the score in % at every milestone, means over the seeds."""
    by_milestone = list(zip(*(row.milestones for row in line.rows), strict=True))
    pairs = [np.mean([each.pairs for each in seeds]) for seeds in by_milestone]
    minutes = [np.mean([each.seconds / 60 for each in seeds]) for seeds in by_milestone]
    scores = [
        np.mean([100 * each.scores.get(column.test, {}).get(column.score, np.nan) for each in seeds])
        for seeds in by_milestone
    ]
    return pairs, minutes, scores


def _titled(column: Column) -> str:
    return f"{heading(column)} ({'lower' if column.is_error else 'higher'} is better)"


def _finish_panels(left: Any, right: Any, column: Column) -> None:
    left.set_title(_titled(column), loc="left", fontsize="medium")
    lowest, highest = left.dataLim.intervaly
    if column.is_error and highest > 10 * lowest:  # errors that differ by factors, some of them 0
        left.set_yscale("symlog", linthresh=0.1, subs=(2, 5))
        left.yaxis.set_major_formatter("{x:g}")
        left.yaxis.set_minor_formatter("{x:g}")
    left.xaxis.set_major_formatter("{x:,.0f}")
    for panel in (left, right):
        panel.grid(alpha=0.3, which="both")
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_xlim(left=0)

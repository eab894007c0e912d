"""The figure of a study of methods, drawn by matplotlib: the scores of recipes on their way."""

import math
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.errors import MissingExtra
from keypatch.files import write_atomically
from keypatch.reports.published import published_recipes
from keypatch.studies.page import heading
from keypatch.studies.table import Column, Line, Table

BEST = 12  # more curves than these and those of the papers nobody can tell apart
COLOURS = 10  # of matplotlib's tab10; the next ones repeat them with another stroke and marker
STYLES = (("-", "o"), ("--", "s"), (":", "^"))
LEGEND = 120  # letters in a row of the legend


def draw_curves(path: Path, table: Table) -> None:
    """A row of panels per test set: its headline score against pairs and against minutes, means over the seeds.

    Of many recipes the best are drawn, and those with a published figure; then the title says so.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra.of("The curves are not drawn, which needs matplotlib", "plot") from error
    if not table.lines:
        return
    count, lines = len(table.headlines), drawn_lines(table)
    in_a_row = max(1, LEGEND // max(6 + len(line.label) for line in lines))  # names, each with its stroke
    height = 1 + 3.2 * count + 0.22 * math.ceil(len(lines) / in_a_row)
    figure = Figure(figsize=(11, height), layout="constrained")
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


def _finish_panels(left: Any, right: Any, column: Column) -> None:
    better = "lower is better" if column.is_error else "higher is better"
    left.set_title(f"{heading(column)} ({better})", loc="left", fontsize="medium")
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

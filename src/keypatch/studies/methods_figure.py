"""The figure of a study of methods, drawn by matplotlib: the scores of every recipe on its way."""

from pathlib import Path
from typing import Any

import numpy as np

from keypatch.errors import MissingExtra
from keypatch.files import write_atomically
from keypatch.studies.methods_page import heading
from keypatch.studies.methods_table import Column, Line, Table

COLOURS = 10  # of matplotlib's tab10; more recipes repeat them with other strokes
STROKES = ("-", "--", ":", "-.")


def draw_curves(path: Path, table: Table) -> None:
    """A row of panels per test set: its headline score against pairs and against minutes, means over the seeds."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("The curves are not drawn: matplotlib is missing; pip install 'keypatch[plot]'.") from error
    if not table.lines:
        return
    count = len(table.headlines)
    figure = Figure(figsize=(11, 1 + 3.2 * count), layout="constrained")
    panels = figure.subplots(count, 2, sharex="col", sharey="row", squeeze=False)
    for (left, right), column in zip(panels, table.headlines, strict=True):
        for number, line in enumerate(table.lines):
            style = {"color": f"C{number % COLOURS}", "linestyle": STROKES[number // COLOURS % len(STROKES)]}
            pairs, minutes, scores = _curve(line, column)
            left.plot(pairs, scores, marker=".", label=line.recipe, **style)
            right.plot(minutes, scores, marker=".", **style)
        _finish_panels(left, right, column)
    panels[-1][0].set_xlabel("pairs")
    panels[-1][1].set_xlabel("minutes of training")
    handles, labels = panels[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right upper", frameon=False)
    with write_atomically(path) as file:
        figure.savefig(file, format="png", dpi=130)


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

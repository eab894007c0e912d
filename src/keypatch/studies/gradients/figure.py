"""AdaSample's figure 2: (a) probabilities by distance and by gradient, (b) their correlation during training."""

from pathlib import Path
from typing import Any

import numpy as np

from keypatch.errors import MissingExtra
from keypatch.files import write_atomically
from keypatch.studies.gradients.table import Gradients, Measurement, spread

PAPER = 0.8  # what the paper's correlation is above
_SIZE = 3.4  # inches of a panel
_KINDS = {"full": ("whole hinge", "C0", "o"), "positive": ("positive term alone", "C1", "^")}


def draw_gradients(path: Path, found: Gradients) -> None:
    """Above, a panel for each run: the probability of every pair by its distance and by its gradient, last checkpoint.

    Below, the correlation of the two at every checkpoint, with the smallest and the largest over the seeds.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra.of("The figure was not drawn because it needs matplotlib", "plot") from error
    runs = found.runs()
    count = min(len(runs), 4)
    rows = -(-len(runs) // count)
    figure = Figure(figsize=(max(2, count) * _SIZE, (rows + 1) * _SIZE), layout="constrained")
    parts: Any = figure.subfigures(2, 1, height_ratios=[rows, 1])
    above, below = parts
    panels = above.subplots(rows, count, squeeze=False).ravel()
    for panel, run in zip(panels, runs, strict=False):
        _scatter(panel, list(found.checkpoints(run).values())[-1][0])
        panel.set_title(run, fontsize="medium", loc="left")
    for panel in panels[len(runs) :]:
        panel.remove()
    panels[0].legend(fontsize="small", frameon=False, loc="upper left")
    above.supxlabel("(a) probability by distance, times the number of pairs", fontsize="medium")
    above.supylabel("by gradient", fontsize="medium")
    _curves(below.subplots(), found)
    with write_atomically(path) as file:
        figure.savefig(file, format="png", dpi=130)


def _scatter(panel: Any, measured: Measurement) -> None:
    by_distance = _probabilities(measured.angles)
    for name, (label, colour, marker) in _KINDS.items():
        by_gradient = _probabilities(getattr(measured, f"{name}_norms"))
        panel.scatter(by_distance, by_gradient, s=8, c=colour, marker=marker, alpha=0.5, linewidths=0, label=label)
    panel.axline((0, 0), slope=1, color="0.6", linewidth=0.8)
    panel.set_xlim(left=0)
    panel.set_ylim(bottom=0)
    _tidy(panel)


def _probabilities(values: tuple[float, ...]) -> Any:
    """Over the pairs, as multiples of the uniform one; all 0 where no pair has a gradient."""
    mean = np.mean(values)
    return np.array(values) / (mean or 1.0)


def _curves(panel: Any, found: Gradients) -> None:
    for number, run in enumerate(found.runs()):
        checkpoints = found.checkpoints(run)
        for name, (label, _, marker) in _KINDS.items():
            style = {"color": f"C{number % 10}", "linestyle": "-" if name == "full" else "--", "marker": marker}
            points = [(pairs or 0, *spread(measured, name)) for pairs, measured in checkpoints.items()]
            x, mean, low, high = np.array(points).T
            panel.plot(x, mean, markersize=4, label=f"{run}, {label}", **style)
            panel.fill_between(x, low, high, color=style["color"], alpha=0.15, linewidth=0)
    panel.axhline(PAPER, color="0.6", linewidth=0.8)
    panel.set_ylim(top=1)
    panel.set_xlabel("(b) pairs trained on")
    panel.set_ylabel("Pearson's correlation")
    panel.xaxis.set_major_formatter("{x:,.0f}")
    panel.legend(fontsize="small", frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
    _tidy(panel)


def _tidy(panel: Any) -> None:
    panel.grid(alpha=0.3)
    panel.spines[["top", "right"]].set_visible(False)

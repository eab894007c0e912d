"""The curves of trainings, from the logs of their runs."""

from collections.abc import Mapping, Sequence

import numpy as np

from keypatch.metrics import Curve
from keypatch.reports.axes import fitted
from keypatch.reports.figures import Line, draw
from keypatch.reports.markup import Markup
from keypatch.reports.reading import Run

_FIELDS = {  # of a record: title of the figure, its axis
    "loss": ("Loss", "loss"),
    "positive": ("Matching pairs", "mean distance"),
    "negative": ("Mined negatives", "mean distance"),
    "validation": ("FPR95 on the validation set", "FPR95 in %"),
}


def training_figures(runs: Sequence[Run], numbers: Mapping[str, int]) -> list[Markup]:
    """A figure for each quantity that some run logged, over the pairs trained on; `numbers` are those of the legend."""
    made = []
    for field, (title, label) in _FIELDS.items():
        lines = [Line(numbers[run.name], run.name, curve) for run in runs if len((curve := _curve(run, field)).x) > 1]
        if lines:
            x = fitted("pairs", np.concatenate([line.curve.x for line in lines]))
            y = fitted(label, np.concatenate([line.curve.y for line in lines]))
            made.append(draw(title, x, y, lines))
    return made


def _curve(run: Run, field: str) -> Curve:
    points = [(record.get("pairs"), record.get(field)) for record in run.records]
    known = [(x, y) for x, y in points if isinstance(x, int | float) and isinstance(y, int | float)]
    table = np.array(known, np.float64).reshape(-1, 2)
    table = table[np.isfinite(table).all(axis=1)]
    return Curve(table[:, 0], table[:, 1])

"""What papers print for the six splits of PhotoTour, as rows of the table."""

from dataclasses import dataclass
from functools import cache

import numpy as np

from keypatch.reports.published import MEAN, published_figures
from keypatch.studies.ubc_rows import SETS, SPLITS


@dataclass(frozen=True)
class PublishedRow:
    """FPR95 in %: six values in the order of `SPLITS`, or one for each test set; the mean as printed, or ours."""

    method: str
    source: str
    values: tuple[float, ...]
    mean: float


@cache
def published_rows() -> tuple[PublishedRow, ...]:
    """A row for each method of each paper; what several papers print alike stands once."""
    found: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for each in published_figures():
        if each.benchmark == "ubc":
            found.setdefault((each.method, each.source), {})[each.trained_on, each.data] = float(each.percent)
    return tuple(_row(method, source, figures) for (method, source), figures in found.items())


def _row(method: str, source: str, figures: dict[tuple[str, str], float]) -> PublishedRow:
    mean = figures.pop(("", MEAN), None)
    values = [figures.get(split) for split in SPLITS]
    if None in values:  # not trained, or not said on what: one for each test set
        values = [value for test in SETS for (_, data), value in figures.items() if data == test]
    known = tuple(value for value in values if value is not None)
    if mean is None:
        return PublishedRow(method, f"{source}; our mean", known, round(float(np.mean(known)), 2))
    return PublishedRow(method, source, known, mean)

"""Scores of a list of errors, in pixels or degrees: matches, homographies, poses."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError


def recall_area(errors: ArrayLike, thresholds: Sequence[float]) -> list[float]:
    """Area under the recall curve from 0 up to each threshold, divided by it: in [0, 1]; nan without errors.

    The curve goes in straight lines from (0, 0) through (e_i, i / n) of the sorted errors and level from the last one
    below the threshold, as in SuperGlue and glue-factory. A failure is inf; an error equal to the threshold is beyond.
    """
    ordered = np.sort(_checked(errors, thresholds))
    recall = np.arange(len(ordered) + 1) / max(len(ordered), 1)
    places = np.concatenate([[0.0], ordered])
    areas: list[float] = []
    for threshold in thresholds:
        last = int(np.searchsorted(places, threshold))  # the first error that is not below
        x, y = np.append(places[:last], threshold), np.append(recall[:last], recall[last - 1])
        areas.append(float(np.sum(np.diff(x) * (y[1:] + y[:-1])) / (2 * threshold)))
    return areas if len(ordered) else [float("nan")] * len(areas)


def share_within(errors: ArrayLike, thresholds: Sequence[float]) -> list[float]:
    """Share of the errors at most each threshold; nan without errors. A failure is inf."""
    values = _checked(errors, thresholds)
    return [float(np.mean(values <= threshold)) if len(values) else float("nan") for threshold in thresholds]


def _checked(errors: ArrayLike, thresholds: Sequence[float]) -> NDArray[np.float64]:
    values = np.asarray(errors, np.float64)
    if values.ndim != 1 or np.isnan(values).any() or (values < 0).any():
        raise KeypatchError("Errors are a list of numbers of 0 or more, inf for a failure; nan is none.")
    if not all(0 < threshold < np.inf for threshold in thresholds):
        raise KeypatchError(f"Thresholds must be above 0 and finite, not {list(thresholds)}.")
    return values

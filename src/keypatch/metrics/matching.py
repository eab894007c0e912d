"""Errors of matches and of estimated homographies, and scores of a list of errors, in pixels or degrees."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry import apply_homography


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
        raise KeypatchError("Errors must be a list of non-negative numbers, inf for a failure, never nan.")
    if not all(0 < threshold < np.inf for threshold in thresholds):
        raise KeypatchError(f"Thresholds must be above 0 and finite, not {list(thresholds)}.")
    return values


def corner_error(estimate: ArrayLike | None, truth: ArrayLike, size: tuple[int, int]) -> float:
    """Mean distance in pixels between the four corners of an image (width, height) carried over by both matrices.

    The corners are the centres of the outermost pixels, (0, 0) to (width - 1, height - 1). No estimate, or one that
    sends a corner to infinity, has the error inf.
    """
    right, bottom = size[0] - 1, size[1] - 1
    corners = [[0, 0], [right, 0], [0, bottom], [right, bottom]]
    wanted = apply_homography(truth, corners)
    if estimate is None:
        return float("inf")
    if np.shape(estimate) != (3, 3):
        raise KeypatchError(f"An estimated homography must be a 3x3 matrix; found shape {np.shape(estimate)}.")
    try:
        found = apply_homography(estimate, corners)
    except KeypatchError:  # not finite, or a corner on its horizon
        return float("inf")
    return float(np.linalg.norm(found - wanted, axis=1).mean())


def epipolar_errors(fundamental: ArrayLike, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Sampson distances in pixels (m,) of matched points (m, 2) from x1.F.x0 = 0; inf where they are not defined."""
    f, x0, x1 = (np.asarray(each, np.float64) for each in (fundamental, first, second))
    lines, back = x0 @ f[:, :2].T + f[:, 2], x1 @ f[:2] + f[2]  # (m, 3)
    slope = np.sqrt((lines[:, :2] ** 2).sum(axis=1) + (back[:, :2] ** 2).sum(axis=1))
    offset = np.abs((lines[:, :2] * x1).sum(axis=1) + lines[:, 2])
    return np.where(slope > 0, offset / np.maximum(slope, 1e-300), np.inf)


def transfer_errors(homography: ArrayLike, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Distances in pixels (m,) from points (m, 2) of the second photo to where x1 ~ H x0 puts those of the first.

    Points that H sends to infinity have the error inf.
    """
    h, x0, x1 = np.asarray(homography, np.float64), np.asarray(first, np.float64), np.asarray(second, np.float64)
    if h.shape != (3, 3) or not np.isfinite(h).all():
        raise KeypatchError(f"A homography must be a finite 3x3 matrix; found shape {h.shape}.")
    carried = x0 @ h[:, :2].T + h[:, 2]  # (m, 3)
    depth = np.where(carried[:, 2] == 0, np.nan, carried[:, 2])
    errors = np.linalg.norm(carried[:, :2] / depth[:, None] - x1, axis=1)
    return np.where(np.isfinite(errors), errors, np.inf)

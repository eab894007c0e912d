"""Errors of camera poses, and the mean average accuracy (mAA) of the Image Matching Challenge."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry.poses import Pose, rotation_angle, translation_angle

DEGREES = np.arange(1, 11)  # the thresholds of mAA(10); mAA(5) has the first five of them


def angular_error(estimate: Pose, truth: Pose) -> float:
    """Degrees, 0 to 180: the larger of the errors of the rotation and of the line along the translation.

    The challenge's formula, which never goes below 4e-6 degrees, without that floor.
    """
    rotation = rotation_angle(estimate.rotation, truth.rotation)
    return max(rotation, translation_angle(estimate.translation, truth.translation))


def are_accurate(errors: ArrayLike) -> NDArray[np.bool_]:
    """(n, 10): whether each error, in degrees, counts at 1, 2, ..., 10 degrees; a failure is 180 or inf.

    It counts below a threshold; at the last one also if it equals it, for the last bin of the challenge's histogram is
    closed and the others are open: an error of 5 does not count at 5 degrees, one of 10 does at 10.
    """
    values = np.asarray(errors, np.float64)
    if values.ndim != 1 or np.isnan(values).any() or (values < 0).any():
        raise KeypatchError("Errors are a list of degrees of 0 or more, inf for a failure; nan is none.")
    accurate = values[:, None] < DEGREES
    accurate[:, -1] |= values == DEGREES[-1]
    return accurate


def average_accuracies(errors: ArrayLike, degrees: int = 10) -> NDArray[np.float64]:
    """(n,) in [0, 1]: the share of the thresholds 1, 2, ..., `degrees` at which each error counts; their mean is mAA.

    That mAA(5) takes its thresholds from the histogram up to 10, so 5 is an open one, is the challenge's rule.
    """
    if not 1 <= degrees <= len(DEGREES):
        raise KeypatchError(f"mAA is defined up to 1, 2, ..., {len(DEGREES)} degrees, not {degrees}.")
    return np.asarray(are_accurate(errors)[:, :degrees].mean(axis=1), np.float64)

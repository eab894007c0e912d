"""Errors of camera poses, and the mean average accuracy (mAA) of the Image Matching Challenge."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry.poses import Pose, align, rotation_angle, translation_angle

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
        raise KeypatchError("Errors must be a list of non-negative degrees, inf for a failure, never nan.")
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


@dataclass(frozen=True)
class PoseErrors:
    """Errors by image, after the best similarity of the camera centres (Umeyama)."""

    images: Sequence[str]
    rotation: Sequence[float]  # degrees
    position: Sequence[float]  # in the unit of the true cameras
    span: float  # the largest distance between two of their centres

    def summary(self) -> dict[str, float]:
        """Median and largest errors; positions also in % of the span."""
        turns, shifts = np.asarray(self.rotation), np.asarray(self.position)
        return {
            "images": len(self.images),
            "rotation_median_degrees": float(np.median(turns)),
            "rotation_max_degrees": float(turns.max()),
            "position_median": float(np.median(shifts)),
            "position_max": float(shifts.max()),
            "position_median_percent": float(100 * np.median(shifts) / self.span),
            "position_max_percent": float(100 * shifts.max() / self.span),
            "span": self.span,
        }

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "summary": self.summary()}


def pose_errors(estimated: Mapping[str, Pose], truth: Mapping[str, Pose]) -> PoseErrors:
    """The errors of the images that both know; fewer than three, or cameras on one line, raise KeypatchError."""
    images = sorted(set(estimated) & set(truth))
    ours = np.array([estimated[name].centre for name in images]).reshape(-1, 3)
    theirs = np.array([truth[name].centre for name in images]).reshape(-1, 3)
    similarity = align(ours, theirs)
    moved = [similarity.carry(estimated[name]) for name in images]
    turns = [rotation_angle(pose.rotation, truth[name].rotation) for name, pose in zip(images, moved, strict=True)]
    shifts = np.linalg.norm([pose.centre for pose in moved] - theirs, axis=1)
    span = float(np.linalg.norm(theirs[:, None] - theirs[None], axis=2).max())
    return PoseErrors(images, turns, shifts.tolist(), span)

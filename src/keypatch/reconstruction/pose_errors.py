"""How far estimated cameras are from true ones, after the similarity that a reconstruction leaves open."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from keypatch.geometry.poses import Pose, align, rotation_angle


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

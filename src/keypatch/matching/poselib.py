"""Models of two views by poselib: the one place of this room that knows of it."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from keypatch.errors import MissingExtra
from keypatch.matching.magsac import Estimate, Points
from keypatch.matching.matches import Model


def estimate_by_poselib(
    first: Points,
    second: Points,
    model: Model,
    threshold: float,
    intrinsics: Sequence[Points] | None,
    seed: int,
    confidence: float,
    iterations: int,
) -> Estimate:
    """The model of points that belong together; those within `threshold` pixels of it agree."""
    try:
        import poselib
    except ImportError as error:
        raise MissingExtra("poselib is not installed: pip install 'keypatch[poselib]', or take magsac.") from error

    settings = {"max_iterations": iterations, "success_prob": confidence, "seed": seed}
    if model == "H":
        matrix, told = poselib.estimate_homography(first, second, settings | {"max_reproj_error": threshold}, {})
    elif model == "F" or intrinsics is None:
        matrix, told = poselib.estimate_fundamental(first, second, settings | {"max_epipolar_error": threshold}, {})
    else:
        cameras = [_camera(matrix) for matrix in intrinsics]
        pose, told = poselib.estimate_relative_pose(
            first, second, *cameras, settings | {"max_epipolar_error": threshold}, {}
        )
        matrix = _cross(pose.t) @ pose.R
    if not np.isfinite(matrix).all() or not matrix.any():
        return None, np.zeros(len(first), np.bool_)
    return np.asarray(matrix, np.float64), np.array(told["inliers"], np.bool_)


def _camera(matrix: Points) -> dict[str, Any]:
    parameters = [matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]]
    return {"model": "PINHOLE", "width": 0, "height": 0, "params": parameters}  # the size is not used


def _cross(t: Points) -> Points:
    """The matrix whose product with x is the cross product of t and x."""
    return np.array([[0, -t[2], t[1]], [t[2], 0, -t[0]], [-t[1], t[0], 0]])

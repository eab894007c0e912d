"""Models of two views by poselib: the one place of this room that knows of it."""

from typing import Any

import numpy as np

from keypatch.errors import MissingExtra
from keypatch.matching.estimating import Answer, Matrix, Points, Task


def estimate_by_poselib(first: Points, second: Points, task: Task) -> Answer:
    try:
        import poselib
    except ImportError as error:
        raise MissingExtra("poselib is not installed: pip install 'keypatch[poselib]', or take magsac.") from error

    settings = {"max_iterations": task.iterations, "success_prob": task.confidence, "seed": task.seed}
    settings["max_reproj_error" if task.model == "H" else "max_epipolar_error"] = task.threshold
    if task.model == "H":
        matrix, told = poselib.estimate_homography(first, second, settings, {})
    elif task.cameras is None:
        matrix, told = poselib.estimate_fundamental(first, second, settings, {})
    else:
        pose, told = poselib.estimate_relative_pose(first, second, *map(_camera, task.cameras), settings, {})
        matrix = _cross(pose.t) @ pose.R
    return matrix, told["inliers"]


def _camera(matrix: Matrix) -> dict[str, Any]:
    parameters = [matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]]
    return {"model": "PINHOLE", "width": 0, "height": 0, "params": parameters}  # the size is not used


def _cross(t: Points) -> Matrix:
    """The matrix whose product with x is the cross product of t and x."""
    return np.array([[0, -t[2], t[1]], [t[2], 0, -t[0]], [-t[1], t[0], 0]])

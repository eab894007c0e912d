"""How far an estimated homography is from the true one."""

import numpy as np
from numpy.typing import ArrayLike

from keypatch.errors import KeypatchError
from keypatch.geometry import apply_homography


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
        raise KeypatchError(f"An estimated homography is a 3x3 matrix, not one of the dimensions {np.shape(estimate)}.")
    try:
        found = apply_homography(estimate, corners)
    except KeypatchError:  # not finite, or a corner on its horizon
        return float("inf")
    return float(np.linalg.norm(found - wanted, axis=1).mean())

"""Models of two views by OpenCV's MAGSAC."""

from collections.abc import Sequence
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.matching.matches import Model

Points = NDArray[np.float64]  # (m, 2)
Estimate = tuple[NDArray[np.float64] | None, NDArray[np.bool_]]  # a 3x3 matrix, or none was found; which points agree


def estimate_by_magsac(
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
    parameters = cv2.UsacParams()  # those that cv2.USAC_MAGSAC stands for, and a seed
    parameters.score = cv2.SCORE_METHOD_MAGSAC
    parameters.loMethod = cv2.LOCAL_OPTIM_SIGMA
    parameters.loSampleSize, parameters.loIterations = (75, 15) if model == "H" else (50, 10)
    parameters.threshold, parameters.confidence, parameters.maxIterations = threshold, confidence, iterations
    parameters.randomGeneratorState = seed
    try:
        matrix, mask = _find(first, second, model, intrinsics, parameters)
    except cv2.error:  # points in a degenerate position
        matrix, mask = None, None
    if matrix is None or mask is None or matrix.shape != (3, 3) or not np.isfinite(matrix).all():
        return None, np.zeros(len(first), np.bool_)
    return matrix, mask.ravel() > 0


def _find(first: Points, second: Points, model: Model, intrinsics: Sequence[Points] | None, parameters: Any) -> Any:
    if model == "H":
        return cv2.findHomography(first, second, params=parameters)
    if model == "F" or intrinsics is None:
        return cv2.findFundamentalMat(first, second, params=parameters)
    return cv2.findEssentialMat(first, second, intrinsics[0], intrinsics[1], None, None, params=parameters)

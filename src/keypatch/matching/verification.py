"""Verification: which matches agree with one geometry of two views, and the estimators that find it.

poselib and pydegensac are optional packages; nothing else of this room knows of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError, MissingExtra
from keypatch.geometry import Keypoints
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Estimator, Matching, Model

Matrix = NDArray[np.float64]  # (3, 3)
Points = NDArray[np.float64]  # (m, 2)
Cameras = tuple[Matrix, Matrix]  # the intrinsics K of both images, for an essential matrix

# The matrix and which points agree with it (m,), as the package gives them: `verify` sorts out what is no model.
Answer = tuple[Any, Any]
Estimate = Callable[[Points, Points, Matching, Cameras | None], Answer]

# One more than what determines the model: that many points always agree with it, and prove nothing.
FEWEST: dict[Model, int] = {"F": 8, "E": 6, "H": 5}

SKEW = 1e-6  # of the focal length: what rounding leaves where there is none


def verify(
    matches: Matches,
    keypoints0: Keypoints,
    keypoints1: Keypoints,
    matching: Matching = Matching(),  # noqa: B008  a frozen value
    intrinsics: Sequence[ArrayLike] | None = None,
) -> Matches:
    """The matches within `matching.threshold` pixels of the best model; all of them, unverified, if it names no model.

    The matrix fulfils x1.F.x0 = 0, or x1 ~ H x0, in pixels whose first centre is (0, 0); E is of the rays K^-1 x. "E"
    needs `intrinsics`: one 3x3 matrix K for both images, or one for each, in the same pixels (OpenCV's). The same
    matches and seed give the same result on one machine. No match is left of too few, or if no model is found.
    """
    for side, keypoints in enumerate((keypoints0, keypoints1)):
        largest = matches.indices[:, side].max(initial=-1)
        if largest >= len(keypoints):
            raise KeypatchError(
                f"A match names keypoint {largest}, but image {side + 1} has {len(keypoints)}. "
                "Features and matches belong to different runs."
            )
    if matching.model is None:
        return matches
    cameras = check_intrinsics(intrinsics) if matching.model == "E" else None
    first, second = keypoints0.xy[matches.indices[:, 0]], keypoints1.xy[matches.indices[:, 1]]
    matrix, agree = _estimate(first, second, matching.model, matching, cameras)
    return replace(matches.take(agree), verified=True, model=matching.model, matrix=matrix)


def _estimate(
    first: Points, second: Points, model: Model, matching: Matching, cameras: Cameras | None
) -> tuple[Matrix | None, NDArray[np.bool_]]:
    """The matrix and which points agree with it; none where it is not found or not proved."""
    nothing = None, np.zeros(len(first), np.bool_)
    if not _are_enough(first, second, model):
        return nothing
    answer, mask = _ESTIMATORS[matching.estimator](first, second, matching, cameras)
    matrix = np.asarray(answer, np.float64)
    if mask is None or matrix.shape != (3, 3) or not np.isfinite(matrix).all() or not matrix.any():
        return nothing
    agree = np.asarray(mask, np.bool_).ravel()
    return (matrix, agree) if _are_enough(first[agree], second[agree], model) else nothing


def _are_enough(first: Points, second: Points, model: Model) -> bool:
    """Whether these places, each counted once in its image, can prove the model: many matches of one place cannot."""
    return min(len(np.unique(places, axis=0)) for places in (first, second)) >= FEWEST[model]


def check_intrinsics(intrinsics: Sequence[ArrayLike] | None) -> Cameras:
    """One matrix for each image; KeypatchError if they are none."""
    if intrinsics is None or len(intrinsics) not in (1, 2):
        raise KeypatchError("An essential matrix needs intrinsics: one matrix K for both images, or one for each.")
    matrices = [np.asarray(matrix, np.float64) for matrix in intrinsics]
    for matrix in matrices:
        shaped = matrix.shape == (3, 3) and np.isfinite(matrix).all()
        if not shaped or matrix[0, 0] <= 0 or matrix[1, 1] <= 0 or tuple(matrix[2]) != (0, 0, 1):
            raise KeypatchError("Intrinsics must be a matrix K with the rows fx 0 cx, 0 fy cy, 0 0 1.")
        if max(abs(matrix[0, 1]), abs(matrix[1, 0])) > SKEW * matrix[0, 0]:
            raise KeypatchError("Intrinsics must have no skew: K has the rows fx 0 cx, 0 fy cy, 0 0 1.")
    return matrices[0], matrices[-1]


def require_intrinsics(matching: Matching, intrinsics: Sequence[ArrayLike] | None) -> None:
    """KeypatchError if the model needs other intrinsics, or none; before the work, not in the middle of it."""
    if matching.model == "E":
        check_intrinsics(intrinsics)
    elif intrinsics is not None:
        raise KeypatchError('Intrinsics are only used for an essential matrix. Use model "E", or leave them out.')


def estimate_by_magsac(first: Points, second: Points, matching: Matching, cameras: Cameras | None) -> Answer:
    parameters = cv2.UsacParams()  # those that cv2.USAC_MAGSAC stands for, and a seed
    parameters.score = cv2.SCORE_METHOD_MAGSAC
    parameters.loMethod = cv2.LOCAL_OPTIM_SIGMA
    parameters.loSampleSize, parameters.loIterations = (75, 15) if matching.model == "H" else (50, 10)
    parameters.threshold, parameters.confidence = matching.threshold, matching.confidence
    parameters.maxIterations, parameters.randomGeneratorState = matching.iterations, matching.seed
    try:
        if matching.model == "H":
            return cv2.findHomography(first, second, params=parameters)
        if cameras is None:
            return cv2.findFundamentalMat(first, second, params=parameters)
        return cv2.findEssentialMat(first, second, *cameras, None, None, params=parameters)
    except cv2.error:  # points in a degenerate position
        return None, None


def estimate_by_poselib(first: Points, second: Points, matching: Matching, cameras: Cameras | None) -> Answer:
    try:
        import poselib
    except ImportError as error:
        raise MissingExtra.of("poselib is not installed", "poselib", "use magsac") from error

    settings = {"max_iterations": matching.iterations, "success_prob": matching.confidence, "seed": matching.seed}
    settings["max_reproj_error" if matching.model == "H" else "max_epipolar_error"] = matching.threshold
    if matching.model == "H":
        matrix, told = poselib.estimate_homography(first, second, settings, {})
    elif cameras is None:
        matrix, told = poselib.estimate_fundamental(first, second, settings, {})
    else:
        pose, told = poselib.estimate_relative_pose(first, second, *map(_pinhole, cameras), settings, {})
        matrix = _cross(pose.t) @ pose.R
    return matrix, told["inliers"]


def _pinhole(matrix: Matrix) -> dict[str, Any]:
    parameters = [matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]]
    return {"model": "PINHOLE", "width": 0, "height": 0, "params": parameters}  # the size is not used


def _cross(t: Points) -> Matrix:
    """The matrix whose product with x is the cross product of t and x."""
    return np.array([[0, -t[2], t[1]], [t[2], 0, -t[0]], [-t[1], t[0], 0]])


def estimate_by_degensac(first: Points, second: Points, matching: Matching, cameras: Cameras | None) -> Answer:
    """Fundamental matrices by DEGENSAC (Chum, Werner, Matas 2005)."""
    try:
        import pydegensac
    except ImportError as error:
        raise MissingExtra.of("pydegensac is not installed", "degensac", "use magsac") from error

    matrix, agree = pydegensac.findFundamentalMatrix(
        first,
        second,
        px_th=matching.threshold,
        conf=matching.confidence,
        max_iters=matching.iterations,
        laf_consistensy_coef=0.0,
        error_type="sampson",
        symmetric_error_check=True,
        enable_degeneracy_check=True,
        seed=matching.seed,
    )
    return matrix, agree


_ESTIMATORS: dict[Estimator, Estimate] = {
    "magsac": estimate_by_magsac,
    "poselib": estimate_by_poselib,
    "degensac": estimate_by_degensac,
}

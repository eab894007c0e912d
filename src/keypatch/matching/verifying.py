"""Matches that agree with one geometry of two views."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints
from keypatch.matching.degensac import estimate_by_degensac
from keypatch.matching.estimating import Estimate, Matrix, Points, Task
from keypatch.matching.magsac import estimate_by_magsac
from keypatch.matching.matches import MODELS, Matches, Model
from keypatch.matching.poselib import estimate_by_poselib

Estimator = Literal["magsac", "poselib", "degensac"]
ESTIMATORS: dict[Estimator, Estimate] = {
    "magsac": estimate_by_magsac,
    "poselib": estimate_by_poselib,
    "degensac": estimate_by_degensac,
}

CONFIDENCE, ITERATIONS = 0.99999, 10_000

# One more than what determines the model: that many points always agree with it, and prove nothing.
FEWEST: dict[Model, int] = {"F": 8, "E": 6, "H": 5}

SKEW = 1e-6  # of the focal length: what rounding leaves where there is none


def verify(
    matches: Matches,
    keypoints0: Keypoints,
    keypoints1: Keypoints,
    model: Model = "F",
    estimator: Estimator = "magsac",
    threshold: float = 1.0,
    intrinsics: Sequence[ArrayLike] | None = None,
    seed: int = 0,
    confidence: float = CONFIDENCE,
    iterations: int = ITERATIONS,
) -> Matches:
    """The matches within `threshold` pixels of the best fundamental or essential matrix ("F", "E") or homography ("H").

    The matrix fulfils x1.F.x0 = 0, or x1 ~ H x0, in pixels whose first centre is (0, 0); E is of the rays K^-1 x. "E"
    needs `intrinsics`: the 3x3 matrix K of both photographs, or one for each, in the same pixels (OpenCV's). The same
    matches and seed give the same result on one machine. An estimator tries until the model is the best with this
    `confidence`, at most `iterations` times. Of too few matches, or if no model is found, none is left.
    """
    check_estimation(model, estimator, threshold)
    _check_numbers(matches, keypoints0, keypoints1)
    cameras = check_intrinsics(intrinsics) if model == "E" else None
    first, second = keypoints0.xy[matches.indices[:, 0]], keypoints1.xy[matches.indices[:, 1]]
    task = Task(model, threshold, cameras, seed, confidence, iterations)
    matrix, agree = _estimate(first, second, ESTIMATORS[estimator], task)
    return replace(matches.take(agree), verified=True, model=model, matrix=matrix)


def _estimate(first: Points, second: Points, estimate: Estimate, task: Task) -> tuple[Matrix | None, NDArray[np.bool_]]:
    """The model and which points agree with it; none where it is not found or not proved."""
    nothing = None, np.zeros(len(first), np.bool_)
    if not _are_enough(first, second, task.model):
        return nothing
    answer, mask = estimate(first, second, task)
    matrix = np.asarray(answer, np.float64)
    if mask is None or matrix.shape != (3, 3) or not np.isfinite(matrix).all() or not matrix.any():
        return nothing
    agree = np.asarray(mask, np.bool_).ravel()
    return (matrix, agree) if _are_enough(first[agree], second[agree], task.model) else nothing


def _are_enough(first: Points, second: Points, model: Model) -> bool:
    """Whether these places, each counted once in its photo, can prove the model: many matches of one place cannot."""
    return min(len(np.unique(places, axis=0)) for places in (first, second)) >= FEWEST[model]


def check_intrinsics(intrinsics: Sequence[ArrayLike] | None) -> tuple[Matrix, Matrix]:
    """One matrix for each photo; KeypatchError if they are none."""
    if intrinsics is None or len(intrinsics) not in (1, 2):
        raise KeypatchError("An essential matrix needs the intrinsics: one matrix K for both photos, or one for each.")
    matrices = [np.asarray(matrix, np.float64) for matrix in intrinsics]
    for matrix in matrices:
        shaped = matrix.shape == (3, 3) and np.isfinite(matrix).all()
        if not shaped or matrix[0, 0] <= 0 or matrix[1, 1] <= 0 or tuple(matrix[2]) != (0, 0, 1):
            raise KeypatchError("Intrinsics are a matrix K of the rows fx 0 cx, 0 fy cy, 0 0 1.")
        if max(abs(matrix[0, 1]), abs(matrix[1, 0])) > SKEW * matrix[0, 0]:
            raise KeypatchError("Intrinsics have no skew: K is of the rows fx 0 cx, 0 fy cy, 0 0 1.")
    return matrices[0], matrices[-1]


def check_estimation(model: str, estimator: str, threshold: float) -> None:
    """KeypatchError if one of the choices is not there."""
    if model not in MODELS:
        raise KeypatchError(f'There is no model "{model}". Choose {", ".join(MODELS)}.')
    if estimator not in ESTIMATORS:
        raise KeypatchError(f'There is no estimator "{estimator}". Choose {" or ".join(ESTIMATORS)}.')
    if estimator == "degensac" and model != "F":
        raise KeypatchError(f'degensac finds fundamental matrices only. Take the model "F", or magsac for "{model}".')
    if not 0 < threshold < np.inf:
        raise KeypatchError(f"The threshold {threshold} must be a number of pixels above 0.")


def _check_numbers(matches: Matches, keypoints0: Keypoints, keypoints1: Keypoints) -> None:
    for side, keypoints in enumerate((keypoints0, keypoints1)):
        largest = matches.indices[:, side].max(initial=-1)
        if largest >= len(keypoints):
            raise KeypatchError(
                f"A match names keypoint {largest}, but photo {side + 1} has {len(keypoints)}. "
                "Features and matches belong to different runs."
            )

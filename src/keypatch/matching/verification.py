"""Verification: which matches agree with one geometry of two views, and the estimators that find it."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.colmap.cameras import Camera, straightened
from keypatch.errors import KeypatchError, MissingExtra
from keypatch.geometry import Keypoints
from keypatch.geometry.poses import cross_matrix
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Estimator, Matching, Model
from keypatch.metrics import epipolar_errors, transfer_errors

Matrix = NDArray[np.float64]  # (3, 3)
Points = NDArray[np.float64]  # (m, 2)
Intrinsics = Camera | ArrayLike  # a camera, or its matrix K (3, 3) in our pixels, which are OpenCV's
Cameras = tuple[Matrix, Matrix]  # the matrices K of both images, for an essential matrix

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
    intrinsics: Sequence[Intrinsics] | None = None,
) -> Matches:
    """The matches within `matching.threshold` pixels of the best model; all of them, unverified, if it names no model.

    The matrix fulfils x1.F.x0 = 0, or x1 ~ H x0, in pixels whose first centre is (0, 0); E is of the rays K^-1 x. "E"
    needs `intrinsics`: one camera or matrix K for both images, or one for each. Places are first straightened by
    cameras that are known to distort, whatever the model. The same matches and seed give the same result on one
    machine. No match is left of too few, or if no model is found.

    Where it is known what the matches were chosen from, the model is estimated `matching.tries` times from all matches,
    and as often from those that pass one test alone and from likely neighbours, and `_choose` takes one of them.
    """
    for side, keypoints in enumerate((keypoints0, keypoints1)):
        largest = matches.indices[:, side].max(initial=-1)
        if largest >= len(keypoints):
            raise KeypatchError(
                f"A match names keypoint {largest}, but image {side + 1} has only {len(keypoints)}. Features and "
                "matches are from different runs."
            )
    if matching.model is None:
        return matches
    cameras = check_intrinsics(intrinsics) if matching.model == "E" else None
    places = partial(_places_joined, keypoints0=keypoints0, keypoints1=keypoints1, intrinsics=intrinsics)
    first, second = matched_places(matches, keypoints0, keypoints1, intrinsics)
    kinds, tries, evidence = [(first, second)], 1, matches.evidence
    if evidence is not None:
        tries = matching.tries
        tests = [passed for passed in (matches.distinct, matches.agreeing) if passed is not None]
        kinds += [(first[passed], second[passed]) for passed in tests if not passed.all()]
        kinds += [places(evidence.likely)] if len(kinds) > 1 else []
    found = [
        _estimate(*kind, matching.model, replace(matching, seed=seed), cameras)
        for kind, seed in product(kinds, range(matching.seed * tries, (matching.seed + 1) * tries))
    ]
    matrix, agree = found[0]
    models = [each for each, _ in found if each is not None]
    if evidence is not None and len(found) > 1 and models:
        errors_of = partial(_errors, model=matching.model, cameras=cameras)
        judges = places(evidence.neighbours), places(evidence.lookalikes)
        matrix = _choose(models, errors_of, *judges, matching.threshold)
        agree = errors_of(matrix, first, second) <= matching.threshold
        if not _are_enough(first[agree], second[agree], matching.model, matching.threshold):
            matrix, agree = None, np.zeros(len(matches), np.bool_)  # likely neighbours found it, no match proves it
    return replace(matches.take(agree), verified=True, model=matching.model, matrix=matrix)


def _places_joined(
    pairs: NDArray[np.int32],
    keypoints0: Keypoints,
    keypoints1: Keypoints,
    intrinsics: Sequence[Intrinsics] | None,
) -> tuple[Points, Points]:
    """(n, 2), (n, 2) the places that pairs of keypoints join, each two once."""
    joined = Matches(pairs, np.zeros(len(pairs), np.float32))
    both = np.unique(np.hstack(matched_places(joined, keypoints0, keypoints1, intrinsics)), axis=0)
    return both[:, :2], both[:, 2:]


def _choose(
    models: Sequence[Matrix],
    errors_of: Callable[[Matrix, Points, Points], NDArray[np.float64]],
    neighbours: tuple[Points, Points],
    lookalikes: tuple[Points, Points],
    threshold: float,
) -> Matrix:
    """The model that most nearest neighbours agree with, beyond the share that would do so by chance.

    Clouds that drift, or a facade shifted by a window, agree with their surroundings, but not with the neighbours
    elsewhere. Neighbours that are wrong agree by chance, and not with every model alike: in a row of windows they lie
    along the epipolar lines of some. The share of lookalikes, which are all wrong, tells how many.
    """

    def share(model: Matrix, places: tuple[Points, Points]) -> float:  # as MSAC counts
        return float(np.maximum(0, 1 - (errors_of(model, *places) / threshold) ** 2).sum()) / max(len(places[0]), 1)

    return max(models, key=lambda model: share(model, neighbours) - share(model, lookalikes))


def _errors(
    matrix: Matrix, first: Points, second: Points, model: Model, cameras: Cameras | None
) -> NDArray[np.float64]:
    """(m,) in pixels: from the epipolar lines, or from where a homography puts the first point."""
    if model == "H":
        return transfer_errors(matrix, first, second)
    if cameras is not None:
        here, there = (np.linalg.inv(each) for each in cameras)
        matrix = there.T @ matrix @ here
    return epipolar_errors(matrix, first, second)


def matched_places(
    matches: Matches, keypoints0: Keypoints, keypoints1: Keypoints, intrinsics: Sequence[Intrinsics] | None = None
) -> tuple[Points, Points]:
    """(m, 2), (m, 2) pixels of the matches in both images, where cameras without distortion would see them."""
    places = [each.xy[column] for each, column in zip((keypoints0, keypoints1), matches.indices.T, strict=True)]
    cameras = (intrinsics[0], intrinsics[-1]) if intrinsics else (None, None)
    first, second = (
        straightened(place, camera) if isinstance(camera, Camera) else place
        for place, camera in zip(places, cameras, strict=True)
    )
    return first, second


def fit_plane(first: Points, second: Points, matching: Matching) -> tuple[Matrix | None, int]:
    """The homography that explains most of these matches, three times as far off as the estimator allows, and how many.

    If nearly all, the photos show a plane or far things, or the camera turned in place: epipoles are then arbitrary.
    """
    loose = replace(matching, model="H", estimator="poselib", threshold=3 * matching.threshold)
    matrix, agree = _estimate(first, second, "H", loose, None)
    return matrix, int(agree.sum())


def _estimate(
    first: Points, second: Points, model: Model, matching: Matching, cameras: Cameras | None
) -> tuple[Matrix | None, NDArray[np.bool_]]:
    """The matrix and which points agree with it; none where it is not found or not proved."""
    nothing = None, np.zeros(len(first), np.bool_)
    if not _are_enough(first, second, model, matching.threshold):
        return nothing
    answer, mask = _ESTIMATORS[matching.estimator](first, second, matching, cameras)
    matrix = np.asarray(answer, np.float64)
    if mask is None or matrix.shape != (3, 3) or not np.isfinite(matrix).all() or not matrix.any():
        return nothing
    agree = np.asarray(mask, np.bool_).ravel()
    return (matrix, agree) if _are_enough(first[agree], second[agree], model, matching.threshold) else nothing


def _are_enough(first: Points, second: Points, model: Model, threshold: float) -> bool:
    """Whether these places, each counted once in its image, can prove the model: those of one place or line cannot."""
    for places in (first, second):
        once = np.unique(places, axis=0)
        if len(once) < FEWEST[model]:
            return False
        across = np.linalg.eigvalsh(np.cov(once.T))[0]
        if across < threshold**2:  # nearer to a line, in the mean, than matches to the model
            return False
    return True


def check_intrinsics(intrinsics: Sequence[Intrinsics] | None) -> Cameras:
    """One matrix for each image; KeypatchError if they are none."""
    if intrinsics is None or len(intrinsics) not in (1, 2):
        raise KeypatchError("An essential matrix needs intrinsics: one matrix K for both images, or one for each.")
    matrices = [each.matrix if isinstance(each, Camera) else np.asarray(each, np.float64) for each in intrinsics]
    for matrix in matrices:
        shaped = matrix.shape == (3, 3) and np.isfinite(matrix).all()
        if not shaped or matrix[0, 0] <= 0 or matrix[1, 1] <= 0 or tuple(matrix[2]) != (0, 0, 1):
            raise KeypatchError("Intrinsics must be a matrix K with the rows fx 0 cx, 0 fy cy, 0 0 1.")
        if max(abs(matrix[0, 1]), abs(matrix[1, 0])) > SKEW * matrix[0, 0]:
            raise KeypatchError("Intrinsics must have no skew: K has the rows fx 0 cx, 0 fy cy, 0 0 1.")
    return matrices[0], matrices[-1]


def plain_intrinsics(intrinsics: Intrinsics | None) -> Any:
    """What a match file records of them."""
    if isinstance(intrinsics, Camera):
        return [intrinsics.model, intrinsics.width, intrinsics.height, *intrinsics.params]
    return None if intrinsics is None else np.asarray(intrinsics).tolist()


def require_intrinsics(matching: Matching, intrinsics: Sequence[Intrinsics] | None) -> None:
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
    import poselib

    settings = poselib_options(matching)
    if matching.model == "H":
        matrix, told = poselib.estimate_homography(first, second, settings, {})
    elif cameras is None:
        matrix, told = poselib.estimate_fundamental(first, second, settings, {})
    else:
        pose, told = poselib.estimate_relative_pose(first, second, *map(_pinhole, cameras), settings, {})
        matrix = cross_matrix(pose.t) @ pose.R
    return matrix, told["inliers"]


def poselib_options(matching: Matching) -> dict[str, Any]:
    """What poselib's estimators are told."""
    error = "max_reproj_error" if matching.model == "H" else "max_epipolar_error"
    stop = {"max_iterations": matching.iterations, "success_prob": matching.confidence}
    return stop | {"seed": matching.seed, error: matching.threshold}


def _pinhole(matrix: Matrix) -> dict[str, Any]:
    parameters = [matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]]
    return {"model": "PINHOLE", "width": 0, "height": 0, "params": parameters}  # the size is not used


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

"""Two photographs to their relative pose, as the Image Matching Challenge does it: a fundamental matrix in pixels."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.relative_pose import recover_pose, to_pixels, to_rays
from keypatch.features import Features
from keypatch.geometry.poses import relative_pose
from keypatch.matching.matches import Matches
from keypatch.matching.neighbours import match_descriptors
from keypatch.matching.verifying import Estimator, verify
from keypatch.metrics import angular_error
from keypatch.reconstruction.camera_models import MODELS, Camera
from keypatch.reconstruction.cameras import PosedCamera

Neighbours = Literal["exact", "flann"]
NEIGHBOURS: tuple[Neighbours, ...] = get_args(Neighbours)
FAILURE = 180.0  # degrees: the larger of the challenge's 180 and 90

Views = tuple[Features, Features]


@dataclass(frozen=True)
class Estimation:
    """How a fundamental matrix is found."""

    estimator: Estimator
    threshold: float  # pixels
    confidence: float
    iterations: int


@dataclass(frozen=True)
class PairOutcome:
    """What became of the matches of one pair with one seed."""

    error: float  # degrees; 180 if there is no pose
    inliers: int  # 0 if there is no pose


def match_views(views: Views, ratio: float | None, neighbours: Neighbours = "exact") -> Matches:
    """Mutual nearest neighbours that pass the ratio test from both sides; of matches of the same places the first."""
    search = "flann" if neighbours == "flann" else "tiles"
    found = match_descriptors(views[0].descriptors, views[1].descriptors, ratio, neighbours=search)
    places = [view.keypoints.xy[found.indices[:, side]] for side, view in enumerate(views)]
    _, first = np.unique(np.concatenate(places, axis=1), axis=0, return_index=True)
    return found.take(np.sort(first))


def score_views(
    views: Views, matches: Matches, cameras: tuple[PosedCamera, PosedCamera], estimation: Estimation, seed: int
) -> PairOutcome:
    """The error of the pose that the matches give.

    The cameras' matrices are used once the fundamental matrix is found; before, only to straighten what a lens with
    known distortion has bent, which no fundamental matrix fits.
    """
    intrinsics = cameras[0].camera, cameras[1].camera
    rays = to_rays(views[0].keypoints, intrinsics[0]), to_rays(views[1].keypoints, intrinsics[1])
    first, second = (
        to_pixels(straight, camera) if _bends(camera) else view.keypoints
        for view, straight, camera in zip(views, rays, intrinsics, strict=True)
    )
    kept = verify(
        matches,
        first,
        second,
        "F",
        estimation.estimator,
        estimation.threshold,
        seed=seed,
        confidence=estimation.confidence,
        iterations=estimation.iterations,
    )
    if kept.matrix is None:
        return PairOutcome(FAILURE, 0)
    pose = recover_pose(essential(kept.matrix, intrinsics), kept, rays)
    return PairOutcome(angular_error(pose, relative_pose(cameras[0].pose, cameras[1].pose)), len(kept))


def essential(fundamental: NDArray[np.float64], cameras: tuple[Camera, Camera]) -> NDArray[np.float64]:
    """E = K1' F K0, of the rays of the first camera and of the second."""
    return np.asarray(cameras[1].matrix.T @ fundamental @ cameras[0].matrix)


def _bends(camera: Camera) -> bool:
    return any(camera.params[MODELS[camera.model][0] + 2 :])

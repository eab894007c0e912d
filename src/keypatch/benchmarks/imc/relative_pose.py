"""Two photographs to their relative pose, as the Image Matching Challenge does it: a fundamental matrix in pixels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap.cameras import Camera, PosedCamera, to_rays
from keypatch.features import Features
from keypatch.geometry import relative_pose
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import find_matches
from keypatch.matching.relative_pose import recover_pose
from keypatch.matching.verification import matched_places, verify
from keypatch.metrics import angular_error

FAILURE = 180.0  # degrees: the larger of the challenge's 180 and 90
Views = tuple[Features, Features]


@dataclass(frozen=True)
class PairOutcome:
    """The outcome of matching one pair with one seed."""

    error: float  # degrees; 180 if there is no pose
    inliers: int  # 0 if there is no pose


def match_views(views: Views, matching: Matching) -> Matches:
    """Matches before any geometry of the two views; of matches of the same places the first."""
    return find_matches(*views, matching).once(views[0].keypoints, views[1].keypoints)


def score_views(
    views: Views, matches: Matches, cameras: tuple[PosedCamera, PosedCamera], matching: Matching
) -> PairOutcome:
    """The error of the pose that the matches give.

    The cameras' matrices are used once the fundamental matrix is found; before, only to straighten what a lens with
    known distortion has bent, which no fundamental matrix fits.
    """
    intrinsics, keypoints = (cameras[0].camera, cameras[1].camera), (views[0].keypoints, views[1].keypoints)
    kept = verify(matches, *keypoints, matching, intrinsics)
    if kept.matrix is None:
        return PairOutcome(FAILURE, 0)
    places = zip(matched_places(kept, *keypoints), intrinsics, strict=True)
    pose = recover_pose(essential(kept.matrix, intrinsics), *(to_rays(place, camera) for place, camera in places))
    return PairOutcome(angular_error(pose, relative_pose(cameras[0].pose, cameras[1].pose)), len(kept))


def essential(fundamental: NDArray[np.float64], cameras: tuple[Camera, Camera]) -> NDArray[np.float64]:
    """E = K1' F K0, of the rays of the first camera and of the second."""
    return np.asarray(cameras[1].matrix.T @ fundamental @ cameras[0].matrix)

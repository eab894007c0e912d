"""Two photographs to their relative pose, as the Image Matching Challenge does it: a fundamental matrix in pixels."""

from dataclasses import dataclass, replace

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.colmap.cameras import Camera, PosedCamera
from keypatch.errors import KeypatchError
from keypatch.features import Features
from keypatch.geometry import Keypoints, Pose, relative_pose
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors
from keypatch.matching.verification import verify
from keypatch.metrics import angular_error

FAILURE = 180.0  # degrees: the larger of the challenge's 180 and 90
Views = tuple[Features, Features]


@dataclass(frozen=True)
class PairOutcome:
    """The outcome of matching one pair with one seed."""

    error: float  # degrees; 180 if there is no pose
    inliers: int  # 0 if there is no pose


def match_views(views: Views, matching: Matching) -> Matches:
    """Mutual nearest neighbours that pass the ratio test from both sides; of matches of the same places the first."""
    found = match_descriptors(views[0].descriptors, views[1].descriptors, matching)
    return found.once(views[0].keypoints, views[1].keypoints)


def score_views(
    views: Views, matches: Matches, cameras: tuple[PosedCamera, PosedCamera], matching: Matching
) -> PairOutcome:
    """The error of the pose that the matches give.

    The cameras' matrices are used once the fundamental matrix is found; before, only to straighten what a lens with
    known distortion has bent, which no fundamental matrix fits.
    """
    intrinsics = cameras[0].camera, cameras[1].camera
    rays = to_rays(views[0].keypoints, intrinsics[0]), to_rays(views[1].keypoints, intrinsics[1])
    first, second = (
        to_pixels(straight, camera) if any(camera.distortion) else view.keypoints
        for view, straight, camera in zip(views, rays, intrinsics, strict=True)
    )
    kept = verify(matches, first, second, matching)
    if kept.matrix is None:
        return PairOutcome(FAILURE, 0)
    pose = recover_pose(essential(kept.matrix, intrinsics), kept, rays)
    return PairOutcome(angular_error(pose, relative_pose(cameras[0].pose, cameras[1].pose)), len(kept))


def essential(fundamental: NDArray[np.float64], cameras: tuple[Camera, Camera]) -> NDArray[np.float64]:
    """E = K1' F K0, of the rays of the first camera and of the second."""
    return np.asarray(cameras[1].matrix.T @ fundamental @ cameras[0].matrix)


def recover_pose(essential: NDArray[np.float64], matches: Matches, rays: tuple[Keypoints, Keypoints]) -> Pose:
    """Of the four poses that an essential matrix stands for, the one with the most matches before both cameras."""
    here, there = rays[0].xy[matches.indices[:, 0]], rays[1].xy[matches.indices[:, 1]]
    _, rotation, direction, _ = cv2.recoverPose(essential, here, there, np.eye(3))
    return Pose(np.asarray(rotation, np.float64), np.asarray(direction, np.float64)[:, 0])


def to_rays(keypoints: Keypoints, camera: Camera) -> Keypoints:
    """The keypoints at the places (x / z, y / z) of what they see, whatever the lens did to it."""
    if camera.model.endswith("FISHEYE"):
        raise KeypatchError(f"Photos of a {camera.model} camera must be undistorted first.")
    if not len(keypoints):
        return keypoints
    bend = np.zeros(8)  # COLMAP's order is OpenCV's: k1 k2 p1 p2 k3 k4 k5 k6
    distortion = camera.distortion
    bend[: len(distortion)] = distortion
    x, y = np.asarray(cv2.undistortPoints(keypoints.xy[:, None], camera.matrix, bend), np.float32)[:, 0].T
    return replace(keypoints, x=x, y=y)


def to_pixels(rays: Keypoints, camera: Camera) -> Keypoints:
    """Where a camera of the same matrix without distortion would see them."""
    (f_x, _, c_x), (_, f_y, c_y), _ = camera.matrix
    return replace(rays, x=f_x * rays.x + c_x, y=f_y * rays.y + c_y)

"""Photographs with known cameras: how far off is the relative pose that matches give."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, get_args

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.homography import SEEDS, THRESHOLD, Matcher
from keypatch.benchmarks.posed_scenes import PosedScene
from keypatch.benchmarks.result import Result
from keypatch.errors import KeypatchError
from keypatch.features import Features
from keypatch.files import hash_folder
from keypatch.geometry import Keypoints
from keypatch.geometry.poses import Pose, relative_pose
from keypatch.matching.matches import Matches
from keypatch.matching.verifying import verify
from keypatch.metrics import angular_error, recall_area
from keypatch.provenance import provenance
from keypatch.reconstruction.camera_models import MODELS, Camera
from keypatch.reconstruction.cameras import PosedCamera

DEGREES = (1, 5, 10)  # up to which the area under the recall curve is taken
REACH = 3  # every photograph with so many after it

# What OpenCV is given: pixels and camera matrices, or rays and a threshold divided by the focal length. Its MAGSAC does
# far worse with rays (docs/results/pipelines.md), but that is how people use it.
Unit = Literal["pixels", "rays"]
UNITS: tuple[Unit, ...] = get_args(Unit)


def evaluate_poses(
    features: Mapping[str, Features],
    scene: PosedScene,
    match: Matcher,
    seeds: Sequence[int] = SEEDS,
    unit: Unit = "pixels",
) -> Result:
    """Areas under the recall curve of pose errors up to 1, 5 and 10 degrees, each photograph with the three after it.

    "auc5" is the mean over seeds of the estimator, "auc5.lowest" and "auc5.highest" are the spread. "count.matches" is
    the mean number of matches of a pair.
    """
    if not seeds:
        raise KeypatchError("Poses are estimated with one seed or more; none was given.")
    errors: list[list[float]] = [[] for _ in seeds]
    counts = []
    for first, second in scene.pairs(REACH):
        matches = match(features[first], features[second])
        counts.append(len(matches))
        places = features[first].keypoints, features[second].keypoints
        cameras = scene.cameras[first], scene.cameras[second]
        for seed, of_seed in zip(seeds, errors, strict=True):
            of_seed.append(pose_error(matches, places, cameras, seed, unit))
    settings = {"scene": scene.name, "pairs": len(counts), "unit": unit, "threshold": THRESHOLD, "seeds": list(seeds)}
    return Result(
        benchmark="relative-pose",
        descriptor=", ".join(sorted({each.descriptor for each in features.values()})),
        settings=settings,
        scores=_scores(errors) | {"count.matches": float(np.mean(counts))},
        curves={},
        provenance=provenance(data=hash_folder(scene.files)),
    )


def pose_error(
    matches: Matches,
    keypoints: tuple[Keypoints, Keypoints],
    cameras: tuple[PosedCamera, PosedCamera],
    seed: int = 0,
    unit: Unit = "pixels",
) -> float:
    """Degrees: the larger of the errors of rotation and of direction; inf if no pose was found."""
    estimate = estimate_pose(matches, keypoints, (cameras[0].camera, cameras[1].camera), seed, unit)
    if estimate is None:
        return float("inf")
    return angular_error(estimate, relative_pose(cameras[0].pose, cameras[1].pose))


def estimate_pose(
    matches: Matches,
    keypoints: tuple[Keypoints, Keypoints],
    cameras: tuple[Camera, Camera],
    seed: int = 0,
    unit: Unit = "pixels",
) -> Pose | None:
    """From the first camera to the second, its translation of length 1; None if there is none."""
    if unit not in UNITS:
        raise KeypatchError(f'There is no unit "{unit}". Choose {" or ".join(UNITS)}.')
    rays = to_rays(keypoints[0], cameras[0]), to_rays(keypoints[1], cameras[1])
    if unit == "rays":
        threshold, intrinsics, places = THRESHOLD / float(np.mean([each.focal for each in cameras])), [np.eye(3)], rays
    else:
        threshold, intrinsics = THRESHOLD, [camera.matrix for camera in cameras]
        places = to_pixels(rays[0], cameras[0]), to_pixels(rays[1], cameras[1])
    kept = verify(matches, *places, "E", threshold=threshold, intrinsics=intrinsics, seed=seed)
    if kept.matrix is None or not len(kept):
        return None
    return recover_pose(kept.matrix, kept, rays)


def recover_pose(essential: NDArray[np.float64], matches: Matches, rays: tuple[Keypoints, Keypoints]) -> Pose:
    """Of the four poses that an essential matrix stands for, the one with the most matches before both cameras."""
    here, there = rays[0].xy[matches.indices[:, 0]], rays[1].xy[matches.indices[:, 1]]
    _, rotation, direction, _ = cv2.recoverPose(essential, here, there, np.eye(3))
    return Pose(np.asarray(rotation, np.float64), np.asarray(direction, np.float64)[:, 0])


def to_rays(keypoints: Keypoints, camera: Camera) -> Keypoints:
    """The keypoints at the places (x / z, y / z) of what they see, whatever the lens did to it."""
    if camera.model.endswith("FISHEYE"):
        raise KeypatchError(f"Photos of a camera {camera.model} have to be undistorted first.")
    if not len(keypoints):
        return keypoints
    bend = np.zeros(8)  # COLMAP's order is OpenCV's: k1 k2 p1 p2 k3 k4 k5 k6
    distortion = camera.params[MODELS[camera.model][0] + 2 :]
    bend[: len(distortion)] = distortion
    x, y = np.asarray(cv2.undistortPoints(keypoints.xy[:, None], camera.matrix, bend), np.float32)[:, 0].T
    return replace(keypoints, x=x, y=y)


def to_pixels(rays: Keypoints, camera: Camera) -> Keypoints:
    """Where a camera of the same matrix without distortion would see them."""
    (f_x, _, c_x), (_, f_y, c_y), _ = camera.matrix
    return replace(rays, x=f_x * rays.x + c_x, y=f_y * rays.y + c_y)


def _scores(errors: list[list[float]]) -> dict[str, float]:
    areas = np.array([recall_area(of_seed, DEGREES) for of_seed in errors])  # (seeds, degrees)
    scores = {}
    for degrees, column in zip(DEGREES, areas.T, strict=True):
        scores[f"auc{degrees}"] = float(column.mean())
        scores[f"auc{degrees}.lowest"], scores[f"auc{degrees}.highest"] = float(column.min()), float(column.max())
    return scores

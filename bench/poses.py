"""How far off is the relative pose that matches give: areas under the recall curve, by pixels or by rays."""

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

import numpy as np

from keypatch.benchmarks.imc.relative_pose import recover_pose, to_pixels, to_rays
from keypatch.benchmarks.imc.scenes import PosedScene
from keypatch.benchmarks.planar.homography import SEEDS
from keypatch.benchmarks.result import Result
from keypatch.colmap.cameras import Camera, PosedCamera
from keypatch.errors import KeypatchError
from keypatch.features import Features
from keypatch.files import hash_folder
from keypatch.geometry import Keypoints
from keypatch.geometry.poses import Pose, relative_pose
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching
from keypatch.matching.verification import verify
from keypatch.metrics import angular_error, recall_area
from keypatch.provenance import provenance

Matcher = Callable[[Features, Features], Matches]

THRESHOLD = 1.0  # pixels: of the estimator
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
    kept = verify(matches, *places, Matching(model="E", threshold=threshold, seed=seed), intrinsics)
    if kept.matrix is None or not len(kept):
        return None
    return recover_pose(kept.matrix, kept, rays)


def _scores(errors: list[list[float]]) -> dict[str, float]:
    areas = np.array([recall_area(of_seed, DEGREES) for of_seed in errors])  # (seeds, degrees)
    scores = {}
    for degrees, column in zip(DEGREES, areas.T, strict=True):
        scores[f"auc{degrees}"] = float(column.mean())
        scores[f"auc{degrees}.lowest"], scores[f"auc{degrees}.highest"] = float(column.min()), float(column.max())
    return scores

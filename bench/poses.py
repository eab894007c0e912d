"""How far off is the relative pose that matches give: areas under the recall curve, by estimator and seed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.imc.scenes import PosedScene
from keypatch.benchmarks.result import Result
from keypatch.colmap.cameras import Camera, PosedCamera, to_rays
from keypatch.errors import KeypatchError
from keypatch.features import Features
from keypatch.files import hash_folder
from keypatch.geometry import Keypoints
from keypatch.geometry.poses import Pose, relative_pose
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching
from keypatch.matching.relative_pose import recover_pose
from keypatch.matching.verification import matched_places, verify
from keypatch.metrics import angular_error, recall_area
from keypatch.provenance import provenance

Matcher = Callable[[Features, Features], Matches]

# An estimator given the matches alone, once; or, "judged", what `keypatch match` does: several tries of poselib, judged
# by all nearest neighbours, where they are known
Estimation = Literal["magsac", "poselib", "judged"]
ESTIMATORS: tuple[Estimation, ...] = ("magsac", "poselib", "judged")
SEEDS = (0, 1, 2)  # of the estimator
THRESHOLD = 1.0  # pixels: of the estimator
DEGREES = (1, 5, 10)  # up to which the area under the recall curve is taken
REACH = 3  # every photograph with so many after it


def evaluate_poses(
    features: Mapping[str, Features],
    scene: PosedScene,
    match: Matcher,
    estimators: Sequence[Estimation] = ESTIMATORS,
    seeds: Sequence[int] = SEEDS,
) -> Result:
    """Areas under the recall curve of pose errors up to 1, 5 and 10 degrees, each photograph with the three after it.

    "auc5.poselib.0" is of that estimator with that seed (`over_seeds`). "count.matches" is the mean number of matches
    of a pair.
    """
    if not seeds:
        raise KeypatchError("Poses are estimated with one seed or more; none was given.")
    tries = list(product(estimators, seeds))
    errors: dict[tuple[Estimation, int], list[float]] = {each: [] for each in tries}
    counts = []
    for first, second in scene.pairs(REACH):
        matches = match(features[first], features[second])
        counts.append(len(matches))
        places = features[first].keypoints, features[second].keypoints
        cameras = scene.cameras[first], scene.cameras[second]
        for estimator, seed in tries:
            errors[estimator, seed].append(pose_error(matches, places, cameras, estimator, seed))
    scores = {
        f"auc{degrees}.{estimator}.{seed}": area
        for (estimator, seed), of_seed in errors.items()
        for degrees, area in zip(DEGREES, recall_area(of_seed, DEGREES), strict=True)
    }
    settings = {"scene": scene.name, "pairs": len(counts), "estimators": list(estimators), "seeds": list(seeds)}
    return Result(
        benchmark="relative-pose",
        descriptor=", ".join(sorted({each.descriptor for each in features.values()})),
        settings={**settings, "threshold": THRESHOLD},
        scores=scores | {"count.matches": float(np.mean(counts))},
        curves={},
        provenance=provenance(data=hash_folder(scene.files)),
    )


def told(estimation: Estimation, matches: Matches, **settings: Any) -> tuple[Matches, Matching]:
    """The matches as that estimation sees them, and its settings."""
    if estimation == "judged":
        return matches, Matching(**settings)
    return replace(matches, evidence=None), Matching(estimator=estimation, **settings)


def over_seeds(scores: Mapping[str, float], name: str) -> NDArray[np.float64]:
    """(seeds,) the values of a score whose name ends with its seed."""
    return np.array([value for full, value in scores.items() if full.rpartition(".")[0] == name])


def pose_error(
    matches: Matches,
    keypoints: tuple[Keypoints, Keypoints],
    cameras: tuple[PosedCamera, PosedCamera],
    estimator: Estimation = "poselib",
    seed: int = 0,
) -> float:
    """Degrees: the larger of the errors of rotation and of direction; inf if no pose was found."""
    estimate = estimate_pose(matches, keypoints, (cameras[0].camera, cameras[1].camera), estimator, seed)
    if estimate is None:
        return float("inf")
    return angular_error(estimate, relative_pose(cameras[0].pose, cameras[1].pose))


def estimate_pose(
    matches: Matches,
    keypoints: tuple[Keypoints, Keypoints],
    cameras: tuple[Camera, Camera],
    estimator: Estimation = "poselib",
    seed: int = 0,
) -> Pose | None:
    """From the first camera to the second, its translation of length 1; None if there is none.

    As `keypatch match` does it: in pixels, from every two places once.
    """
    given, matching = told(estimator, matches, model="E", threshold=THRESHOLD, seed=seed)
    kept = verify(given.once(*keypoints), *keypoints, matching, cameras)
    if kept.matrix is None or not len(kept):
        return None
    places = zip(matched_places(kept, *keypoints), cameras, strict=True)
    return recover_pose(kept.matrix, *(to_rays(place, camera) for place, camera in places))

"""The stereo task of the Image Matching Challenge (Jin et al. 2021): how good a relative pose do the matches give?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import cv2
import numpy as np

from keypatch.benchmarks.posed_scenes import PosedScene, read_posed_scenes
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.stereo_covisibility import COVISIBILITIES, Pair, covisible_pairs
from keypatch.benchmarks.stereo_features import EXTRACTION, scene_features
from keypatch.benchmarks.stereo_pairs import NEIGHBOURS, Estimation, Neighbours, match_views, score_views
from keypatch.benchmarks.stereo_scores import SceneOutcome, Told, curve_of, replicates_of, scores_of
from keypatch.describers.protocol import Describer, Progress
from keypatch.errors import KeypatchError, MissingExtra
from keypatch.features import Extraction, Features
from keypatch.files import hash_folder
from keypatch.matching.degensac import has_degensac
from keypatch.matching.neighbours import check_choices
from keypatch.matching.verifying import Estimator, check_estimation

Choice = Literal["auto", "degensac", "magsac", "poselib"]

# Pixels, tuned by the challenge's authors; poselib was not among their estimators and gets what its kin got.
THRESHOLDS: dict[Estimator, float] = {"degensac": 0.5, "magsac": 1.25, "poselib": 0.5}
PACKAGES: dict[Estimator, str] = {"degensac": "pydegensac", "poselib": "poselib"}  # magsac is OpenCV's
HELD = 128  # photos whose features stay in memory: 0.5 GB with 8,000 keypoints of 128 numbers


@dataclass(frozen=True)
class Stereo:
    """How photographs are matched and their poses estimated; the defaults are the challenge's with 2,048 keypoints."""

    extraction: Extraction = EXTRACTION
    ratio: float | None = 0.9  # tested in both directions; None: no ratio test
    neighbours: Neighbours = "exact"  # flann: OpenCV's kd-trees, as in the challenge
    estimator: Choice = "auto"  # auto: degensac where it is installed, else magsac
    threshold: float | None = None  # pixels; None: the challenge's for the estimator
    confidence: float = 0.999999  # of the estimator, that its best sample is free of wrong matches
    iterations: int = 100_000  # of the estimator, at most
    seeds: tuple[int, ...] = (0,)  # of the estimator; scores are means over them
    covisibility: float = 0.1  # pairs that see less alike do not count, where the data tell
    reach: int | None = None  # only pairs of photos so near in the order of their names

    def __post_init__(self) -> None:
        check_choices(self.ratio, "mutual", "tiles", "both")
        if self.neighbours not in NEIGHBOURS:
            raise KeypatchError(f'There are no neighbours "{self.neighbours}". Choose {" or ".join(NEIGHBOURS)}.')
        estimation = self.estimation()
        check_estimation("F", estimation.estimator, estimation.threshold)
        if not 0 < self.confidence < 1 or self.iterations < 1:
            raise KeypatchError(
                f"confidence is {self.confidence} and must lie between 0 and 1; iterations is {self.iterations} and "
                "must be above 0."
            )
        if not self.seeds or not all(0 <= seed < 2**31 for seed in self.seeds):
            raise KeypatchError(f"Poses are estimated with one seed or more, each from 0 to {2**31 - 1}: {self.seeds}.")
        if self.covisibility not in COVISIBILITIES:
            raise KeypatchError(f"The covisibility {self.covisibility} must be one of 0, 0.1, ..., 0.9.")
        if self.reach is not None and self.reach < 1:
            raise KeypatchError(f"The reach {self.reach} must be 1 or more: how far apart photos of a pair may be.")

    def estimation(self) -> Estimation:
        """The estimator that is there, with its threshold."""
        best: Estimator = "degensac" if has_degensac() else "magsac"
        estimator = best if self.estimator == "auto" else self.estimator
        threshold = THRESHOLDS.get(estimator, 1.0) if self.threshold is None else self.threshold
        return Estimation(estimator, threshold, self.confidence, self.iterations)


def evaluate_stereo(
    source: Describer | str | Path,
    data: str | Path,
    settings: Stereo = Stereo(),  # noqa: B008  a frozen value
    progress: Progress | None = None,
) -> Result:
    """Mean average accuracy of relative poses of all pairs that count, of a scene or of a folder of scenes.

    source: a describer, a feature file (ours or hloc's), or a folder of keypoints.h5 and descriptors.h5.
    "maa10" and "maa5" are mAA at 10 and 5 degrees (`metrics.poses`), "failed" is the share of pairs without a pose:
    fewer than 8 matches, or fewer than 8 that agree. "count.matches" and "count.inliers" are means over pairs,
    "count.keypoints" over photos. Of several scenes each counts the same; "maa10.<scene>" and so on are their own.
    """
    recorded = _settings(settings)
    scenes = read_posed_scenes(data)
    chosen = [covisible_pairs(scene, settings.covisibility, settings.reach) for scene in scenes]
    photos = [photo for scene in scenes for photo in scene.photos]
    features = scene_features(source, photos, settings.extraction, progress)
    total = sum(len(pairs) for pairs, _ in chosen)
    told, outcomes = Told(progress, total), dict[str, SceneOutcome]()
    for scene, (pairs, _) in zip(scenes, chosen, strict=True):
        outcomes[scene.name] = _score_scene(features, scene, pairs, settings, told)
    return Result(
        benchmark="stereo",
        descriptor=features.descriptor,
        settings={
            "scenes": list(outcomes),
            "photos": len(photos),
            "pairs": total,
            "pairs_chosen_by": "; ".join(sorted({by for _, by in chosen})),
            **recorded,
            **features.settings,
        },
        scores=scores_of(outcomes),
        curves={"maa": curve_of(outcomes.values())},
        provenance=features.provenance(hash_folder(path for scene in scenes for path in scene.files)),
        replicates={f"maa{degrees}": replicates_of(outcomes.values(), degrees) for degrees in (10, 5)},
    )


def _score_scene(
    features: Mapping[str, Features], scene: PosedScene, pairs: Sequence[Pair], settings: Stereo, told: Told
) -> SceneOutcome:
    read = lru_cache(HELD)(features.__getitem__)
    matches, found = [], []
    for first, second in pairs:
        views, cameras = (read(first), read(second)), (scene.cameras[first], scene.cameras[second])
        matched = match_views(views, settings.ratio, settings.neighbours)
        matches.append(len(matched))
        found.append([score_views(views, matched, cameras, settings.estimation(), seed) for seed in settings.seeds])
        told.one_more()
    return SceneOutcome(
        keypoints=np.array([len(read(name)) for name in scene.names]),
        matches=np.array(matches),
        inliers=np.array([[each.inliers for each in row] for row in found]),
        errors=np.array([[each.error for each in row] for row in found]),
    )


def _settings(settings: Stereo) -> dict[str, Any]:
    estimation = settings.estimation()
    return {
        "ratio": settings.ratio,
        "neighbours": settings.neighbours,
        **asdict(estimation),
        "estimator_version": _version(estimation.estimator),
        "seeds": list(settings.seeds),
        "covisibility": settings.covisibility,
        "reach": settings.reach,
    }


def _version(estimator: Estimator) -> str:
    """The estimator's package; MissingExtra where it is not installed, before any work."""
    package = PACKAGES.get(estimator)
    if package is None:
        return f"OpenCV {cv2.__version__}"
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        sentence = f"{package} is not installed: pip install 'keypatch[{estimator}]', or take magsac."
        raise MissingExtra(sentence) from None

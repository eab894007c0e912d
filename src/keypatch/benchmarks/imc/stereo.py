"""The stereo task of the Image Matching Challenge (Jin et al. 2021): how good a relative pose do the matches give?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from keypatch.benchmarks.contamination import seen_photos
from keypatch.benchmarks.imc.covisibility import COVISIBILITIES, Pair, covisible_pairs
from keypatch.benchmarks.imc.features import ChallengeExtraction, scene_features
from keypatch.benchmarks.imc.relative_pose import match_views, score_views
from keypatch.benchmarks.imc.scenes import PosedScene, read_posed_scenes
from keypatch.benchmarks.imc.scores import SceneOutcome, Tally, stereo_curve, stereo_replicates, stereo_scores
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.stages import recorded_matching, refuse_idle
from keypatch.describers.protocol import Describer
from keypatch.errors import KeypatchError, MissingExtra
from keypatch.features import Features
from keypatch.files import hash_folder
from keypatch.matching.adalam import AdaLAM
from keypatch.matching.matching import Estimator, Matching
from keypatch.progress import Progress
from keypatch.settings import CheckedFields, option, other_default

# Pixels, tuned by the challenge's authors; poselib was not among their estimators and gets what its kin got.
THRESHOLDS: dict[Estimator, float] = {"degensac": 0.5, "magsac": 1.25, "poselib": 0.5}
PACKAGES: dict[Estimator, str] = {"degensac": "pydegensac", "poselib": "poselib"}  # magsac is OpenCV's
HELD = 128  # photos whose features stay in memory: 0.5 GB with 8,000 keypoints of 128 numbers


@dataclass(frozen=True, repr=False)
class StereoMatching(Matching):
    """The challenge's way of matching, with poselib, which does better than the estimators that it had."""

    turn: float = other_default(Matching, "turn", 180.0)
    filter: AdaLAM | None = other_default(Matching, "filter", None)
    confidence: float = other_default(Matching, "confidence", 0.999999)
    iterations: int = other_default(Matching, "iterations", 100_000)


@dataclass(frozen=True)
class Stereo(CheckedFields):
    """How photographs are matched and their poses estimated; the defaults are the challenge's with 2,048 keypoints."""

    extraction: ChallengeExtraction = option(factory=ChallengeExtraction)
    matching: StereoMatching = option(factory=StereoMatching)
    tuned: bool = option(True, "Use the challenge's tuned threshold instead of matching.threshold.")
    seeds: tuple[int, ...] = option(
        (0,), "Random seeds of the estimator; scores are averaged over them.", least=0, below=2**31
    )
    covisibility: float = option(0.1, "Skip pairs with lower covisibility, if the data list it.")
    reach: int | None = option(None, "Use only pairs at most this many photos apart in name order.", least=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_idle("matching", self.matching, ("model", "seed"), "Poses are estimated with each seed in seeds.")
        if self.tuned:
            why = "The challenge tuned the threshold for the estimator."
            refuse_idle("matching", self.matching, ("threshold",), why, ", or set tuned=false")
        if not self.seeds:
            raise KeypatchError("The estimator needs one seed or more, but seeds is empty.")
        if self.covisibility not in COVISIBILITIES:
            raise KeypatchError(f"covisibility must be one of 0, 0.1, ..., 0.9, not {self.covisibility}.")

    def estimation(self) -> Matching:
        """Matching with the threshold that acts."""
        tuned = THRESHOLDS[self.matching.estimator]
        return replace(self.matching, threshold=tuned) if self.tuned else self.matching


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
    tally, outcomes = Tally(progress, "pairs", total), dict[str, SceneOutcome]()
    for scene, (pairs, _) in zip(scenes, chosen, strict=True):
        outcomes[scene.name] = _score_scene(features, scene, pairs, settings, tally)
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
        scores=stereo_scores(outcomes),
        curves={"maa": stereo_curve(outcomes.values())},
        provenance=features.provenance(hash_folder(path for scene in scenes for path in scene.files)),
        contamination=seen_photos(source, photos),
        replicates={f"maa{degrees}": stereo_replicates(outcomes.values(), degrees) for degrees in (10, 5)},
    )


def _score_scene(
    features: Mapping[str, Features], scene: PosedScene, pairs: Sequence[Pair], settings: Stereo, tally: Tally
) -> SceneOutcome:
    read = lru_cache(HELD)(features.__getitem__)
    matching, matches, found = settings.estimation(), [], []
    for first, second in pairs:
        views, cameras = (read(first), read(second)), (scene.cameras[first], scene.cameras[second])
        matched = match_views(views, matching)
        matches.append(len(matched))
        found.append([score_views(views, matched, cameras, replace(matching, seed=seed)) for seed in settings.seeds])
        tally.one_more()
    return SceneOutcome(
        keypoints=np.array([len(read(name)) for name in scene.names]),
        matches=np.array(matches),
        inliers=np.array([[each.inliers for each in row] for row in found]),
        errors=np.array([[each.error for each in row] for row in found]),
    )


def _settings(settings: Stereo) -> dict[str, Any]:
    matching = settings.estimation()
    names = ("ratio", "neighbours", "estimator", "threshold", "confidence", "iterations")
    return {
        **recorded_matching(matching, names),
        "estimator_version": _version(matching.estimator),
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
        raise MissingExtra.of(f"{package} is not installed", estimator, "use magsac") from None

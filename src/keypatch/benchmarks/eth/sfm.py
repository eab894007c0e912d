"""Models from matches (ETH local feature evaluation, Schönberger et al. 2017): what COLMAP makes of them."""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from keypatch.benchmarks.contamination import seen_photos
from keypatch.benchmarks.eth.data import SfmSet, read_sfm_set
from keypatch.benchmarks.eth.features import sfm_features
from keypatch.benchmarks.eth.model import (
    MAX_ERROR,
    MODELS,
    How,
    dense_points,
    hash_matched,
    hold_matches,
    map_matches,
    read_record,
    write_all_matches,
    write_eth_features,
)
from keypatch.benchmarks.eth.scores import (
    compare_poses,
    model_replicates,
    model_scores,
    photo_shares,
    pose_replicates,
    pose_scores,
)
from keypatch.benchmarks.photo_features import PhotoFeatures
from keypatch.benchmarks.result import Replicates, Result
from keypatch.benchmarks.stages import VERIFICATION, BenchmarkExtraction, ColmapMatching, recorded_matching, refuse_idle
from keypatch.cache import is_cache_writable
from keypatch.colmap.job import MappingOutcome
from keypatch.colmap.package import colmap_version, load_pycolmap
from keypatch.describers.protocol import Describer
from keypatch.matching.matching import Matching, Sides
from keypatch.progress import Progress, interruptible
from keypatch.settings import CheckedFields, option, other_default


@dataclass(frozen=True, repr=False)
class SfmMatching(ColmapMatching):
    """The ratio is tested from the first photo of a pair only; several papers test none."""

    ratio: float | None = other_default(Matching, "ratio", 0.8)
    ratio_sides: Sides = other_default(Matching, "ratio_sides", "first")


@dataclass(frozen=True)
class Sfm(CheckedFields):
    """How a set is matched and reconstructed."""

    extraction: BenchmarkExtraction = option(factory=BenchmarkExtraction)
    matching: SfmMatching = option(factory=SfmMatching)
    minimum_matches: int = option(15, "Pairs with fewer matches count as unmatched.", least=0)
    half_pixel_off: bool | None = option(
        None, "Omit COLMAP's 0.5 px shift, as published; none omits it only for given keypoints."
    )
    refine_cameras: bool = option(True, "Let the mapper refine known cameras, as COLMAP does by default.")
    seed: int = option(0, "Random seed of verification and mapping.", least=0, below=2**31)
    threads: int = option(1, "Threads COLMAP may use; with more than one, models vary slightly.", least=1)
    folder: str | None = option(None, "Folder for the binary files, database and model; none uses the cache.")

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_idle("matching", self.matching, VERIFICATION, "COLMAP verifies the matches with its defaults.")

    def of_matches(self) -> dict[str, Any]:
        """What matches depend on beside features and pairs."""
        return recorded_matching(self.matching, ("ratio",)) | {"minimum_matches": self.minimum_matches}


def evaluate_sfm(
    source: Describer | str | Path,
    data: str | Path,
    settings: Sfm = Sfm(),  # noqa: B008  a frozen value
    progress: Progress | None = None,
) -> Result:
    """COLMAP's model of a set from the matches of a describer, a feature file or a folder of descriptors/IMAGE.bin.

    "registered" is the share of photos with a pose in the largest model, "count.images" and "count.registered" their
    numbers, "count.points" and "count.observations" the model's, "track_length" observations of a point,
    "observations_per_image" those of a registered photo, "error.reprojection" the mean over points in pixels;
    "count.inlier_pairs" and "count.inlier_matches" are left by geometric verification; "count.dense_points" needs CUDA.
    Where true cameras are known, "error.rotation" (degrees) and "error.position" (their unit) are the medians over
    registered photos after the best similarity, ".largest" the largest. Intervals are over photos (`eth.scores`).
    """
    load_pycolmap()
    if settings.folder is not None:
        read_record(Path(settings.folder))  # refused before minutes of work
    scene = read_sfm_set(data)
    with interruptible("What was described and matched is kept" if _outlives(settings.folder) else ""):
        features = sfm_features(source, scene, settings.extraction, progress)
        chosen = settings.of_matches()
        with hold_matches(settings.folder, chosen | hash_matched(features, scene.pairs)) as folder:
            if settings.folder is not None:
                write_eth_features(folder, features)
            write_all_matches(folder, features, scene.pairs, settings.matching, settings.minimum_matches, progress)
            result = _map_and_score(folder, scene, features, settings, progress)
    return replace(result, contamination=seen_photos(source, scene.photos))


def _map_and_score(
    folder: Path, scene: SfmSet, features: PhotoFeatures, settings: Sfm, progress: Progress | None
) -> Result:
    off = bool(scene.keypoints) if settings.half_pixel_off is None else settings.half_pixel_off
    how = How(off, settings.refine_cameras, settings.seed, settings.threads)
    keypoints = {name: each.keypoints for name, each in features.items()}
    lasting = _outlives(settings.folder)
    outcome = map_matches(folder, scene, keypoints, how, progress, lasting=lasting)
    dense = dense_points(folder, scene, how, lasting=lasting) if outcome.statistics else 0
    scores, replicates = _score(folder / MODELS / "0", scene, outcome)
    return Result(
        benchmark="sfm",
        descriptor=features.descriptor,
        settings={
            "data": scene.name,
            "images": len(scene.photos),
            "pairs": len(scene.pairs),
            "keypoints_per_image": float(np.mean([len(each) for each in keypoints.values()])),
            **settings.of_matches(),
            **asdict(how),
            "known_cameras": len(scene.known),
            "max_error": MAX_ERROR,
            "colmap": colmap_version(),
            "dense": "needs CUDA" if dense is None else "photometric",
            **features.settings,
        },
        scores=scores if dense is None else scores | {"count.dense_points": float(dense)},
        curves={},
        provenance=features.provenance(scene.data_hash),
        replicates=replicates,
    )


def _score(model: Path, scene: SfmSet, outcome: MappingOutcome) -> tuple[dict[str, float], dict[str, Replicates]]:
    names = [photo.name for photo in scene.photos]
    scores = model_scores(outcome, len(names))
    replicates = model_replicates(photo_shares(model if outcome.statistics else None, names))
    errors = compare_poses(model, scene.truth) if outcome.statistics and scene.truth else None
    if errors is not None:
        scores |= pose_scores(errors)
        replicates |= pose_replicates(errors, names)
    return scores, replicates


def _outlives(folder: str | None) -> bool:
    """Whether the folder of matches and model, chosen or in the cache, is there after an error."""
    return folder is not None or is_cache_writable()

"""Models from matches (ETH local feature evaluation, Schönberger et al. 2017): what COLMAP makes of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from keypatch.benchmarks.kept_folders import is_cache_writable
from keypatch.benchmarks.photo_features import PhotoFeatures
from keypatch.benchmarks.result import Replicates, Result
from keypatch.benchmarks.sfm_data import SfmSet, read_sfm_set
from keypatch.benchmarks.sfm_features import EthFeatures, sfm_features
from keypatch.benchmarks.sfm_folder import hash_matched, hold_folder, read_record, write_all_matches, write_features
from keypatch.benchmarks.sfm_model import MAX_ERROR, MODEL, How, dense_points, map_matches
from keypatch.benchmarks.sfm_scores import (
    compare_poses,
    model_replicates,
    model_scores,
    photo_shares,
    pose_replicates,
    pose_scores,
)
from keypatch.describers.protocol import Describer, Progress
from keypatch.detection.loading_colmap import load_pycolmap
from keypatch.errors import Interrupted, KeypatchError
from keypatch.features import Extraction
from keypatch.matching.neighbours import check_choices
from keypatch.provenance import provenance
from keypatch.reconstruction.colmap import colmap_version
from keypatch.reconstruction.outcome import Outcome


@dataclass(frozen=True)
class Sfm:
    """How a set is matched and reconstructed."""

    extraction: Extraction = field(default_factory=Extraction)
    ratio: float | None = 0.8  # tested from the first photo of a pair only; none: no test, as several papers do
    minimum_matches: int = 15  # pairs with fewer have none
    half_pixel_off: bool | None = None  # leave COLMAP's 0.5 out, as published; none: where keypoints are given
    refine_cameras: bool = True  # let the mapper refine known cameras, as COLMAP does by default
    seed: int = 0  # of verification and mapping
    threads: int = 1  # of COLMAP; with several the model is nearly the same
    folder: str | None = None  # keep the benchmark's binary files, database and model there; none: in the cache

    def __post_init__(self) -> None:
        check_choices(self.ratio, "mutual", "tiles", "first")
        if self.minimum_matches < 0 or self.threads < 1:
            raise KeypatchError("minimum_matches cannot be below 0, nor threads below 1.")
        if not 0 <= self.seed < 2**31:
            raise KeypatchError(f"The seed {self.seed} must lie between 0 and {2**31 - 1}.")


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
    registered photos after the best similarity, ".largest" the largest. Intervals are over photos (`sfm_scores`).
    """
    load_pycolmap()
    if settings.folder is not None:
        read_record(Path(settings.folder))  # refused before minutes of work
    scene = read_sfm_set(data)
    with _stopping(settings.folder):
        features = sfm_features(source, scene, settings.extraction, progress)
        chosen = {"ratio": settings.ratio, "minimum_matches": settings.minimum_matches}
        with hold_folder(settings.folder, chosen | hash_matched(features, scene.pairs)) as folder:
            if settings.folder is not None:
                write_features(folder, features)
            write_all_matches(folder, features, scene.pairs, settings.ratio, settings.minimum_matches, progress)
            return _map_and_score(folder, scene, features, settings, progress)


def _map_and_score(
    folder: Path, scene: SfmSet, features: PhotoFeatures | EthFeatures, settings: Sfm, progress: Progress | None
) -> Result:
    off = bool(scene.keypoints) if settings.half_pixel_off is None else settings.half_pixel_off
    how = How(off, settings.refine_cameras, settings.seed, settings.threads)
    keypoints = {name: each.keypoints for name, each in features.items()}
    lasting = _outlives(settings.folder)
    outcome = map_matches(folder, scene, keypoints, how, progress, lasting=lasting)
    dense = dense_points(folder, scene, how, lasting=lasting) if outcome.statistics else 0
    scores, replicates = _score(folder / MODEL, scene, outcome)
    return Result(
        benchmark="sfm",
        descriptor=features.descriptor,
        settings={
            "data": scene.name,
            "images": len(scene.photos),
            "pairs": len(scene.pairs),
            "keypoints_per_image": float(np.mean([len(each) for each in keypoints.values()])),
            "ratio": settings.ratio,
            "minimum_matches": settings.minimum_matches,
            **asdict(how),
            "known_cameras": len(scene.known),
            "max_error": MAX_ERROR,
            "colmap": colmap_version(),
            "dense": "needs CUDA" if dense is None else "photometric",
            **features.settings,
        },
        scores=scores if dense is None else scores | {"count.dense_points": float(dense)},
        curves={},
        provenance=provenance(data=scene.data_hash, **features.hashes),
        replicates=replicates,
    )


def _score(model: Path, scene: SfmSet, outcome: Outcome) -> tuple[dict[str, float], dict[str, Replicates]]:
    names = [photo.name for photo in scene.photos]
    scores = model_scores(outcome, len(names))
    replicates = model_replicates(photo_shares(model if outcome.statistics else None, names))
    errors = compare_poses(model, scene.truth) if outcome.statistics and scene.truth else None
    if errors is not None:
        scores |= pose_scores(errors)
        replicates |= pose_replicates(errors, names)
    return scores, replicates


@contextmanager
def _stopping(folder: str | None) -> Iterator[None]:
    """Ctrl-C becomes one sentence, whatever was being done."""
    try:
        yield
    except (Interrupted, KeyboardInterrupt) as stop:
        kept = _outlives(folder)
        rest = "what was described and matched is kept; the same command goes on." if kept else "nothing was kept."
        raise Interrupted(f"Stopped; {rest}") from stop


def _outlives(folder: str | None) -> bool:
    """Whether the folder of matches and model, chosen or in the cache, is there after an error."""
    return folder is not None or is_cache_writable()

"""The multiview task of the Image Matching Challenge (Jin et al. 2021): how good are the poses of COLMAP's models?"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.kept_folders import hold_chosen_folder, hold_kept_folder, is_cache_writable
from keypatch.benchmarks.multiview_bags import Bag, find_bags
from keypatch.benchmarks.multiview_models import BagOutcome, reconstruct_bag
from keypatch.benchmarks.multiview_scores import replicates_of, scores_of
from keypatch.benchmarks.posed_scenes import PosedScene, read_posed_scenes
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.stereo import HELD
from keypatch.benchmarks.stereo_covisibility import SHARED_POINTS, Pair, read_shared_points
from keypatch.benchmarks.stereo_features import EXTRACTION, scene_features
from keypatch.benchmarks.stereo_pairs import NEIGHBOURS, Neighbours, match_views
from keypatch.benchmarks.stereo_scores import Told
from keypatch.describers.protocol import Describer, Progress
from keypatch.detection.loading_colmap import load_pycolmap
from keypatch.errors import KeypatchError
from keypatch.features import Extraction, Features
from keypatch.files import hash_folder
from keypatch.matching.neighbours import check_choices
from keypatch.provenance import provenance
from keypatch.reconstruction.colmap import SMALLEST_MODEL
from keypatch.reconstruction.photo_cameras import choose_cameras

CAMERA_MODEL = "SIMPLE_RADIAL"  # COLMAP's own choice, and so the challenge's


@dataclass(frozen=True)
class Multiview:
    """How bags of photographs are matched and mapped; the defaults are the challenge's with 2,048 keypoints."""

    extraction: Extraction = EXTRACTION
    bags: tuple[int, ...] = (5, 10, 25)  # sizes; those above the number of photos are left out
    drawn_bags: int = 10  # of each size that has no files of bags; the challenge's files are 100, 50 and 25
    ratio: float | None = 0.9  # tested in both directions; None: no ratio test
    neighbours: Neighbours = "exact"
    shared_points: int = SHARED_POINTS  # pairs with no more in common are not matched, where the data tell
    known_cameras: bool = False  # give COLMAP the true intrinsics; else it begins with EXIF data or a guess
    max_error: float = 4.0  # pixels, of COLMAP's verification
    seed: int = 0  # of drawn bags and of COLMAP, which runs in one thread

    def __post_init__(self) -> None:
        check_choices(self.ratio, "mutual", "tiles", "both")
        if self.neighbours not in NEIGHBOURS:
            raise KeypatchError(f'There are no neighbours "{self.neighbours}". Choose {" or ".join(NEIGHBOURS)}.')
        if not self.bags or min(self.bags) < SMALLEST_MODEL or len(set(self.bags)) < len(self.bags):
            raise KeypatchError(f"Bags are of {SMALLEST_MODEL} photos or more, each size once; not {self.bags}.")
        if self.drawn_bags < 1 or self.shared_points < 0 or not 0 < self.max_error < np.inf or self.seed < 0:
            raise KeypatchError(
                f"drawn_bags ({self.drawn_bags}) must be 1 or more, max_error ({self.max_error}) above 0, "
                f"shared_points ({self.shared_points}) and seed ({self.seed}) 0 or more."
            )

    def of_a_bag(self) -> dict[str, Any]:
        """What the outcome of a bag depends on beside its photos and features."""
        names = ("ratio", "neighbours", "shared_points", "known_cameras", "max_error", "seed")
        return {name: getattr(self, name) for name in names} | {"pycolmap": version("pycolmap")}


def evaluate_multiview(
    source: Describer | str | Path,
    data: str | Path,
    settings: Multiview = Multiview(),  # noqa: B008  a frozen value
    progress: Progress | None = None,
    folder: str | Path | None = None,
) -> Result:
    """Mean average accuracy of the poses in COLMAP's models of bags of photos, of a scene or of a folder of scenes.

    source: a describer, a feature file (ours or hloc's), or a folder of keypoints.h5 and descriptors.h5.
    "maa10.bag5" is the mean over the bags of five photos of mAA at 10 degrees over all pairs of the bag, where a photo
    outside the largest model makes its pairs fail; "maa10" is the mean over sizes, and "maa5" likewise. "registered" is
    the share of photos in the model; "count.points" and "track_length" are of its points. Progress counts bags.

    What became of a bag is kept in `folder` (by default in the cache), and not done again.

    Raises:
        KeypatchError: COLMAP crashed on a bag; those before it are kept where that can be.
    """
    load_pycolmap()
    scenes = read_posed_scenes(data)
    bags = {scene.name: find_bags(scene, settings.bags, settings.drawn_bags, settings.seed) for scene in scenes}
    photos = [photo for scene in scenes for photo in scene.photos]
    features = scene_features(source, photos, settings.extraction, progress)
    told = Told(progress, sum(map(len, bags.values())))
    outcomes = {}
    for scene in scenes:
        with _kept_in(folder, scene, features, settings) as kept:
            lasting = folder is not None or is_cache_writable()
            mapped = _map_bags(scene, bags[scene.name], features, settings, kept, told, lasting=lasting)
            outcomes[scene.name] = list(mapped)
    return Result(
        benchmark="multiview",
        descriptor=features.descriptor,
        settings={
            "scenes": [scene.name for scene in scenes],
            "photos": len(photos),
            "bags": {str(size): _count(bags, size) for size in settings.bags if _count(bags, size)},
            "bags_left_out": [size for size in settings.bags if not _count(bags, size)],
            **settings.of_a_bag(),
            **features.settings,
        },
        scores=scores_of(outcomes),
        curves={},
        provenance=features.provenance(hash_folder(path for scene in scenes for path in scene.files)),
        replicates=replicates_of(outcomes),
    )


def _map_bags(
    scene: PosedScene,
    bags: list[Bag],
    features: Mapping[str, Features],
    settings: Multiview,
    kept: Path,
    told: Told,
    *,
    lasting: bool,
) -> Iterator[tuple[Bag, BagOutcome]]:
    """What became of each bag: read if it was kept, else made and kept."""
    read = lru_cache(HELD)(features.__getitem__)
    points = read_shared_points(scene)
    known = {name: scene.cameras[name].camera for name in scene.names} if settings.known_cameras else {}
    cameras = choose_cameras(scene.photos, known, CAMERA_MODEL, None, shared=False)

    @cache  # bags share pairs
    def match(pair: Pair) -> NDArray[np.int32]:
        return match_views((read(pair[0]), read(pair[1])), settings.ratio, settings.neighbours).indices

    for bag in bags:
        outcome = BagOutcome.load(kept / f"{bag.name}.json")
        if outcome is None:
            in_order = sorted(bag.photos, key=scene.names.index)
            pairs = [
                pair for pair in combinations(in_order, 2) if points is None or points[pair] > settings.shared_points
            ]
            outcome = reconstruct_bag(
                bag,
                scene,
                cameras,
                {name: read(name).keypoints for name in bag.photos},
                {pair: match(pair) for pair in pairs},
                kept / f"{bag.name}.unfinished",
                known_cameras=settings.known_cameras,
                max_error=settings.max_error,
                seed=settings.seed,
                lasting=lasting,
            )
            outcome.save(kept / f"{bag.name}.json")
        told.one_more()
        yield bag, outcome


def _kept_in(
    folder: str | Path | None, scene: PosedScene, features: Mapping[str, Features], settings: Multiview
) -> AbstractContextManager[Path]:
    """The folder of the bags of these features, for this process alone."""
    digest = hashlib.sha256(json.dumps([settings.of_a_bag(), provenance().version, hash_folder(scene.files)]).encode())
    for name in scene.names:
        digest.update(features[name].keypoints.xy.tobytes() + features[name].descriptors.tobytes())
    name = f"{scene.name}-{digest.hexdigest()[:32]}"
    return hold_kept_folder("multiview", name, "Bags") if folder is None else hold_chosen_folder(Path(folder) / name)


def _count(bags: Mapping[str, list[Bag]], size: int) -> int:
    return sum(bag.size == size for some in bags.values() for bag in some)

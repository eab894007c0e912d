"""The multiview task of the Image Matching Challenge (Jin et al. 2021): how good are the poses of COLMAP's models?"""

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

from keypatch.benchmarks.contamination import seen_photos
from keypatch.benchmarks.imc.bags import Bag, BagOutcome, find_bags, reconstruct_bag
from keypatch.benchmarks.imc.covisibility import SHARED_POINTS, Pair, read_shared_points
from keypatch.benchmarks.imc.features import ChallengeExtraction, scene_features
from keypatch.benchmarks.imc.relative_pose import match_views
from keypatch.benchmarks.imc.scenes import PosedScene, read_posed_scenes
from keypatch.benchmarks.imc.scores import Tally, bag_replicates, bag_scores
from keypatch.benchmarks.imc.stereo import HELD
from keypatch.benchmarks.photo_features import hash_features
from keypatch.benchmarks.result import Result
from keypatch.benchmarks.stages import VERIFICATION, ColmapMatching, recorded_matching, refuse_idle
from keypatch.cache import cache_key, hold_kept_folder, is_cache_writable
from keypatch.colmap.cameras import choose_cameras
from keypatch.colmap.mapper import SMALLEST_MODEL
from keypatch.colmap.package import load_pycolmap
from keypatch.describers.protocol import Describer
from keypatch.errors import KeypatchError
from keypatch.features import Features
from keypatch.files import hash_folder, hold_chosen_folder
from keypatch.progress import Progress, interruptible
from keypatch.provenance import provenance
from keypatch.settings import CheckedFields, option

CAMERA_MODEL = "SIMPLE_RADIAL"  # COLMAP's own choice, and so the challenge's


@dataclass(frozen=True)
class Multiview(CheckedFields):
    """How bags of photographs are matched and mapped; the defaults are the challenge's with 2,048 keypoints."""

    extraction: ChallengeExtraction = option(factory=ChallengeExtraction)
    matching: ColmapMatching = option(factory=ColmapMatching)
    bags: tuple[int, ...] = option((5, 10, 25), "Bag sizes; those above the number of photos are skipped.")
    drawn_bags: int = option(
        10, "Bags drawn per size if there are no bag files (the challenge's: 100, 50, 25).", least=1
    )
    shared_points: int = option(
        SHARED_POINTS, "Match only pairs that share more points than this, if the data list them.", least=0
    )
    known_cameras: bool = option(False, "Give COLMAP the true intrinsics; otherwise it uses EXIF or a guess.")
    max_error: float = option(4.0, "Largest error in pixels in COLMAP's verification.", above=0)
    seed: int = option(0, "Random seed of the drawn bags and of COLMAP (which runs in one thread).", least=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        refuse_idle("matching", self.matching, VERIFICATION, "COLMAP verifies the matches: see max_error.")
        if not self.bags or min(self.bags) < SMALLEST_MODEL or len(set(self.bags)) < len(self.bags):
            raise KeypatchError(f"Bag sizes must be {SMALLEST_MODEL} or more, each given once; found {self.bags}.")

    def of_a_bag(self) -> dict[str, Any]:
        """What the outcome of a bag depends on beside its photos and features."""
        matching = recorded_matching(self.matching, ("ratio", "neighbours"))
        names = ("shared_points", "known_cameras", "max_error", "seed")
        return matching | {name: getattr(self, name) for name in names} | {"pycolmap": version("pycolmap")}


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
        Interrupted: Ctrl-C; the same call resumes.
    """
    load_pycolmap()
    scenes = read_posed_scenes(data)
    bags = {scene.name: find_bags(scene, settings.bags, settings.drawn_bags, settings.seed) for scene in scenes}
    photos = [photo for scene in scenes for photo in scene.photos]
    lasting, outcomes = folder is not None or is_cache_writable(), {}
    with interruptible("What was described and reconstructed is kept" if lasting else ""):
        features = scene_features(source, photos, settings.extraction, progress)
        tally = Tally(progress, "bags", sum(map(len, bags.values())))
        for scene in scenes:
            with _kept_in(folder, scene, features, settings) as kept:
                mapped = _map_bags(scene, bags[scene.name], features, settings, kept, tally, lasting=lasting)
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
        scores=bag_scores(outcomes),
        curves={},
        provenance=features.provenance(hash_folder(path for scene in scenes for path in scene.files)),
        contamination=seen_photos(source, photos),
        replicates=bag_replicates(outcomes),
    )


def _map_bags(
    scene: PosedScene,
    bags: list[Bag],
    features: Mapping[str, Features],
    settings: Multiview,
    kept: Path,
    tally: Tally,
    *,
    lasting: bool,
) -> Iterator[tuple[Bag, BagOutcome]]:
    """The outcome of each bag: loaded if it was kept, otherwise computed and kept."""
    read = lru_cache(HELD)(features.__getitem__)
    points = read_shared_points(scene)
    known = {name: scene.cameras[name].camera for name in scene.names} if settings.known_cameras else {}
    cameras = choose_cameras(scene.photos, known, CAMERA_MODEL, None, shared=False)

    @cache  # bags share pairs
    def match(pair: Pair) -> NDArray[np.int32]:
        return match_views((read(pair[0]), read(pair[1])), settings.matching).indices

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
        tally.one_more()
        yield bag, outcome


def _kept_in(
    folder: str | Path | None, scene: PosedScene, features: Mapping[str, Features], settings: Multiview
) -> AbstractContextManager[Path]:
    """The folder of the bags of these features, for this process alone."""
    own = hash_features((name, features[name]) for name in scene.names)
    made_of = [settings.of_a_bag(), provenance().version, hash_folder(scene.files), own]
    name = f"{scene.name}-{cache_key(made_of)}"
    return hold_kept_folder("multiview", name, "Bags") if folder is None else hold_chosen_folder(Path(folder) / name)


def _count(bags: Mapping[str, list[Bag]], size: int) -> int:
    return sum(bag.size == size for some in bags.values() for bag in some)

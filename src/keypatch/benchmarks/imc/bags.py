"""Bags: the small sets of photographs that COLMAP reconstructs, and how far its cameras are from the true ones."""

import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.imc.scenes import DEPRECATED, PosedScene
from keypatch.colmap import Camera, read_model, write_database
from keypatch.colmap.job import MappingJob
from keypatch.colmap.process import run_colmap
from keypatch.errors import DataError, KeypatchError
from keypatch.files import read_json, reading, write_json
from keypatch.geometry import Keypoints, Pose, relative_pose
from keypatch.metrics import angular_error
from keypatch.patches.tables import read_lines

FOLDER = "sub_set"
Matched = Mapping[tuple[str, str], NDArray[np.int32]]


@dataclass(frozen=True)
class Bag:
    """Some photographs of a scene, by their names."""

    name: str  # as the challenge's file: 5bag_000
    size: int
    photos: tuple[str, ...]


def find_bags(scene: PosedScene, sizes: Sequence[int], each: int, seed: int) -> list[Bag]:
    """Of every size that the scene has photos for: the bags of sub_set/, else `each` drawn ones, or all there can be.

    Bags with a photo that the challenge has withdrawn are left out.
    """
    bags = []
    for size in sizes:
        files = sorted((scene.folder / FOLDER).glob(f"{size}bag_*.txt"))
        if files:
            bags += [bag for file in files if (bag := _read(file, size, scene)) is not None]
        elif size <= len(scene.photos):
            bags += _draw(scene, size, each, seed)
    if not bags:
        raise DataError(
            f"{scene.name} has {len(scene.photos)} photos, too few for a bag of {min(sizes)}. Choose smaller bags."
        )
    return bags


def _read(path: Path, size: int, scene: PosedScene) -> Bag | None:
    known, photos = scene.by_stem, dict[str, None]()
    for number, line in enumerate(read_lines(path), start=1):
        stem = PurePosixPath(line.strip()).stem
        if stem in DEPRECATED:
            return None
        if line.strip() and stem not in known:
            raise DataError(f'{path}, line {number}: there is no photo "{line.strip()}" in {scene.folder / "images"}.')
        if line.strip():
            photos[known[stem]] = None
    if len(photos) != size:
        raise DataError(f"{path} should name {size} different photos but names {len(photos)}. Copy it again.")
    return Bag(path.stem, size, tuple(photos))


def _draw(scene: PosedScene, size: int, count: int, seed: int) -> list[Bag]:
    """Different bags, each of photos drawn without replacement."""
    rng, names = np.random.default_rng([seed, size]), scene.names
    drawn = dict[tuple[str, ...], None]()
    while len(drawn) < min(count, comb(len(names), size)):
        drawn[tuple(names[index] for index in sorted(rng.permutation(len(names))[:size]))] = None
    return [Bag(f"{size}bag_{number:03}", size, photos) for number, photos in enumerate(drawn)]


@dataclass(frozen=True)
class BagOutcome:
    """What COLMAP made of a bag; without a model every error is inf."""

    errors: tuple[float, ...]  # degrees, of every pair of photos; inf if one is not in the model
    registered: int
    points: int
    track_length: float | None  # None without a model

    def save(self, path: Path) -> None:
        value = asdict(self) | {"errors": [None if np.isinf(error) else error for error in self.errors]}
        write_json(path, value)

    @classmethod
    def load(cls, path: Path) -> "BagOutcome | None":
        """What `save` wrote; None if it is not there or cannot be read, and has to be made again."""
        with suppress(DataError), reading(path):
            value: dict[str, Any] = read_json(path)
            errors = tuple(np.inf if error is None else float(error) for error in value.pop("errors"))
            return cls(errors=errors, **value)
        return None


def reconstruct_bag(
    bag: Bag,
    scene: PosedScene,
    cameras: Mapping[str, Camera],
    keypoints: Mapping[str, Keypoints],
    matches: Matched,
    work: Path,
    *,
    known_cameras: bool,
    max_error: float,
    seed: int,
    lasting: bool,
) -> BagOutcome:
    """Verify and map the bag with one thread, in the folder `work`, which is removed at the end.

    `lasting`: what lies around `work` is still there after an error, so that one may name it.

    Raises:
        KeypatchError: COLMAP crashed; the folder stays.
    """
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    paths = {photo.name: str(photo.path.absolute()) for photo in scene.photos if photo.name in bag.photos}
    own = {name: cameras[name] for name in bag.photos}
    database = write_database(work / "database.db", own, keypoints, matches)
    fixed = list(bag.photos) if known_cameras else []
    models, scratch = work / "models", work / "colmap"
    scratch.mkdir()
    job = MappingJob(str(database), str(models), str(scratch), paths, fixed, max_error, seed, threads=1, seconds=None)
    try:
        statistics = run_colmap(job, lasting=lasting).statistics
    except KeypatchError as error:
        rest = " The bags before it are kept." if lasting else ""
        raise KeypatchError(f"{scene.name}, {bag.name}: {error}{rest}") from error
    found = {} if statistics is None else read_model(models / "0", stand_ins=True).poses
    shutil.rmtree(work)
    return BagOutcome(
        errors=tuple(_error(pair, found, scene) for pair in combinations(bag.photos, 2)),
        registered=len(found),
        points=0 if statistics is None else statistics.points,
        track_length=None if statistics is None else statistics.track_length,
    )


def _error(pair: tuple[str, str], found: Mapping[str, Pose], scene: PosedScene) -> float:
    if not all(name in found for name in pair):
        return float("inf")
    first, second = (scene.cameras[name].pose for name in pair)
    return angular_error(relative_pose(found[pair[0]], found[pair[1]]), relative_pose(first, second))

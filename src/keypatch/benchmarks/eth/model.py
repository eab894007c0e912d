"""Matches and the model that COLMAP makes of them, kept in a folder of the user's or in the cache to resume from.

Matches are in the benchmark's own files, a file for each pair, there whole or not at all.
"""

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.eth.data import SfmSet
from keypatch.benchmarks.eth.files import (
    DESCRIPTORS,
    KEYPOINTS,
    MATCHES,
    image_file,
    pair_file,
    read_eth_matches,
    write_eth_descriptors,
    write_eth_keypoints,
    write_eth_matches,
)
from keypatch.benchmarks.photo_features import hash_features
from keypatch.cache import cache_key, hold_kept_folder
from keypatch.colmap.database import write_database
from keypatch.colmap.job import MappingJob, MappingOutcome
from keypatch.colmap.package import colmap_version, has_cuda
from keypatch.colmap.process import run_colmap
from keypatch.errors import DataError, KeypatchError
from keypatch.features import Features
from keypatch.files import LOCK, Format, hold_chosen_folder, read_json, read_text, reading, write_json
from keypatch.geometry import Keypoints
from keypatch.geometry.converters import COLMAP_CORNER
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import find_matches
from keypatch.matching.pairs import Pair
from keypatch.progress import Progress, track

RECORD = "sfm.json"
FORMAT = Format("keypatch-sfm", 1, "record of matches")
IN_MEMORY = 32  # photos' features: 200 MB of 13,000 keypoints with 128 numbers
DATABASE, MODELS, DENSE = "database.db", "models", "dense"
OUTCOME, UNFINISHED = "outcome.json", "unfinished"
MAX_ERROR = 4.0  # pixels: COLMAP's default of verification


@contextmanager
def hold_matches(chosen: str | Path | None, made_of: Mapping[str, Any]) -> Iterator[Path]:
    """The folder of matches that depend on `made_of`, held by this process; None is one in the cache.

    Raises:
        KeypatchError: the chosen one cannot be made, holds something else, or another process works in it.
    """
    kept = (
        hold_kept_folder("sfm", cache_key(made_of), "Matches and models")
        if chosen is None
        else hold_chosen_folder(Path(chosen))
    )
    with kept as folder:
        recorded = read_record(folder)
        if recorded is None:
            write_json(folder / RECORD, {**FORMAT.head(), "made_of": dict(made_of)})
        elif changed := [key for key in sorted({*recorded, *made_of}) if recorded.get(key) != made_of.get(key)]:
            raise KeypatchError(
                f"{folder} has matches from another evaluation ({', '.join(changed)} differ). Choose a new folder."
            )
        yield folder


def read_record(folder: Path) -> dict[str, Any] | None:
    """What the matches in a folder depend on; None if nothing is in it, KeypatchError if anything but matches is."""
    if not folder.exists():
        return None
    content = {path.name for path in folder.iterdir()} if folder.is_dir() else {folder.name}
    if not content - {LOCK}:
        return None
    if RECORD not in content:
        raise KeypatchError(f"{folder} holds files that are not keypatch matches. Choose a new folder.")
    return dict(FORMAT.read_json(folder / RECORD)["made_of"])


def write_eth_features(folder: Path, features: Mapping[str, Features]) -> None:
    """Keypoints and descriptors in the benchmark's files, for its public scripts."""
    for name in features:
        keypoints, descriptors = (image_file(folder / kind, name) for kind in (KEYPOINTS, DESCRIPTORS))
        if not descriptors.exists():  # written last
            each = features[name]
            write_eth_keypoints(keypoints, each.keypoints)
            write_eth_descriptors(descriptors, each.descriptors)


def write_all_matches(
    folder: Path,
    features: Mapping[str, Features],
    pairs: Sequence[Pair],
    matching: Matching,
    minimum: int,
    progress: Progress | None = None,
) -> None:
    """The matches of every pair whose file is not there yet; fewer than the minimum are none."""
    read = lru_cache(IN_MEMORY)(features.__getitem__)
    for first, second in track(pairs, "pairs", progress):
        path = pair_file(folder / MATCHES, first, second)
        if not path.exists():
            indices = find_matches(read(first), read(second), matching).indices
            write_eth_matches(path, indices if len(indices) >= minimum else indices[:0])


def hash_matched(features: Mapping[str, Features], pairs: Sequence[Pair]) -> dict[str, str]:
    """SHA-256 of the features, wherever they come from, and of the pairs."""
    of_pairs = hashlib.sha256(json.dumps(pairs).encode()).hexdigest()
    return {"features": hash_features(features.items()), "pairs": of_pairs}


@dataclass(frozen=True)
class How:
    """What a model depends on beside photos, cameras and matches."""

    half_pixel_off: bool  # keypoints lie half a pixel off in COLMAP, as published
    refine_cameras: bool
    seed: int
    threads: int


def map_matches(
    folder: Path,
    scene: SfmSet,
    keypoints: Mapping[str, Keypoints],
    how: How,
    progress: Progress | None = None,
    *,
    lasting: bool = True,
) -> MappingOutcome:
    """What COLMAP makes of the matches in a folder, now or in an earlier call with the same photos and settings.

    The models, the largest first, are the folder's `models/0, 1, ...`; verified matches are in its `database.db`.
    `lasting`: the folder is still there after an error, so that one may name files in it.
    """
    made_of = asdict(how) | {"data": scene.data_hash, "max_error": MAX_ERROR, "colmap": colmap_version()}
    earlier = _read(folder, made_of)
    if earlier is not None:
        return earlier
    unfinished = folder / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)  # of a failed or killed process
    for name in (MODELS, "colmap"):
        (unfinished / name).mkdir(parents=True)
    # half a pixel is added on the way into the database
    back = COLMAP_CORNER if how.half_pixel_off else 0.0
    places = {name: replace(each, x=each.x - back, y=each.y - back) for name, each in keypoints.items()}
    matches = _read_matches(folder, scene, keypoints)
    write_database(unfinished / DATABASE, scene.cameras, places, matches, share_cameras=scene.sharing)
    outcome = run_colmap(_job(unfinished, unfinished / "colmap", scene, how), progress, lasting=lasting)
    _swap_in(folder, outcome, made_of)
    return outcome


def dense_points(folder: Path, scene: SfmSet, how: How, *, lasting: bool = True) -> int | None:
    """The number of dense points of the folder's model; None where there is no CUDA."""
    if not has_cuda():
        return None
    work = folder / DENSE
    count = work / "points.json"
    if not count.is_file():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        job = replace(_job(folder, work, scene, how), dense=str(scene.root.absolute()))
        write_json(count, run_colmap(job, lasting=lasting).dense_points)
    return int(read_text(count))


def _job(folder: Path, scratch: Path, scene: SfmSet, how: How) -> MappingJob:
    return MappingJob(
        database=str(folder / DATABASE),
        models=str(folder / MODELS),
        scratch=str(scratch),
        photos={photo.name: str(photo.path.absolute()) for photo in scene.photos},
        fixed=[] if how.refine_cameras else sorted(scene.known),
        max_error=MAX_ERROR,
        seed=how.seed,
        threads=how.threads,
        seconds=None,
    )


def _read_matches(
    folder: Path, scene: SfmSet, keypoints: Mapping[str, Keypoints]
) -> Iterator[tuple[tuple[str, str], NDArray[np.int64]]]:
    for first, second in scene.pairs:
        counts = len(keypoints[first]), len(keypoints[second])
        yield (first, second), read_eth_matches(pair_file(folder / MATCHES, first, second), counts)


def _read(folder: Path, made_of: Mapping[str, Any]) -> MappingOutcome | None:
    with suppress(DataError), reading(folder / OUTCOME):  # none, or not to be believed: it is made again
        value = read_json(folder / OUTCOME)
        return MappingOutcome.from_json(value["outcome"]) if value["made_of"] == made_of else None
    return None


def _swap_in(folder: Path, outcome: MappingOutcome, made_of: Mapping[str, Any]) -> None:
    """The new model in the place of an earlier one; a process killed in between leaves none, and all matches."""
    unfinished = folder / UNFINISHED
    (folder / OUTCOME).unlink(missing_ok=True)
    for name in (MODELS, "model", DENSE):  # "model" was the largest alone, in 0.1
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (MODELS, DATABASE):
        (unfinished / name).replace(folder / name)
    write_json(folder / OUTCOME, {"made_of": dict(made_of), "outcome": outcome.to_json()})
    shutil.rmtree(unfinished, ignore_errors=True)

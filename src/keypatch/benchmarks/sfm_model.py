"""Matches become a model: verification and mapping by COLMAP with its defaults, kept beside the matches."""

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.sfm_data import SfmSet
from keypatch.describers.protocol import Progress
from keypatch.features.eth_files import MATCHES, pair_file, read_eth_matches
from keypatch.files import write_json
from keypatch.geometry import Keypoints
from keypatch.geometry.converters import COLMAP_CORNER
from keypatch.reconstruction.checked_database import write_database
from keypatch.reconstruction.child import Job
from keypatch.reconstruction.colmap import colmap_version, has_cuda
from keypatch.reconstruction.mapping import run_colmap
from keypatch.reconstruction.outcome import Outcome

DATABASE, MODEL, DENSE = "database.db", "model", "dense"
OUTCOME, UNFINISHED = "outcome.json", "unfinished"
MAX_ERROR = 4.0  # pixels: COLMAP's default of verification


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
) -> Outcome:
    """What COLMAP makes of the matches in a folder, now or in an earlier call with the same photos and settings.

    The largest model, by photos, is in the folder's `model`; the verified matches are in its `database.db`.
    `lasting`: the folder is still there after an error, so that one may name files in it.
    """
    made_of = asdict(how) | {"data": scene.data_hash, "max_error": MAX_ERROR, "colmap": colmap_version()}
    earlier = _read(folder, made_of)
    if earlier is not None:
        return earlier
    unfinished = folder / UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)  # of a failed or killed process
    for name in (MODEL, "colmap"):
        (unfinished / name).mkdir(parents=True)
    places = {name: _moved(each) if how.half_pixel_off else each for name, each in keypoints.items()}
    matches = _read_matches(folder, scene, keypoints)
    write_database(unfinished / DATABASE, scene.cameras, places, matches, share_cameras=scene.sharing)
    job = _job(unfinished, unfinished / "colmap", scene, how)
    outcome = run_colmap(job, _counting(progress, len(scene.photos)), lasting=lasting)
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
        outcome = run_colmap(job, lasting=lasting)
        write_json(count, outcome.dense_points)
    return int(json.loads(count.read_text(encoding="utf-8")))


def _job(folder: Path, scratch: Path, scene: SfmSet, how: How) -> Job:
    return Job(
        database=str(folder / DATABASE),
        model=str(folder / MODEL),
        scratch=str(scratch),
        photos={photo.name: str(photo.path.absolute()) for photo in scene.photos},
        fixed=[] if how.refine_cameras else sorted(scene.known),
        max_error=MAX_ERROR,
        seed=how.seed,
        threads=how.threads,
        seconds=None,
    )


def _moved(keypoints: Keypoints) -> Keypoints:
    """So that the half pixel which is added on the way into the database is taken back."""
    return replace(keypoints, x=keypoints.x - COLMAP_CORNER, y=keypoints.y - COLMAP_CORNER)


def _read_matches(
    folder: Path, scene: SfmSet, keypoints: Mapping[str, Keypoints]
) -> Iterator[tuple[tuple[str, str], NDArray[np.int64]]]:
    for first, second in scene.pairs:
        counts = len(keypoints[first]), len(keypoints[second])
        yield (first, second), read_eth_matches(pair_file(folder / MATCHES, first, second), counts)


def _counting(progress: Progress | None, photos: int) -> Callable[[str], None]:
    """From COLMAP's words, "mapping: 7 photos", to photos registered of all."""

    def tell(words: str) -> None:
        registered = re.fullmatch(r"mapping: ([\d,]+) photos?", words)
        if registered and progress is not None:
            progress(int(registered[1].replace(",", "")), photos)

    return tell


def _read(folder: Path, made_of: Mapping[str, Any]) -> Outcome | None:
    try:
        value = json.loads((folder / OUTCOME).read_text(encoding="utf-8"))
        return Outcome.from_json(value["outcome"]) if value["made_of"] == made_of else None
    except (OSError, ValueError, KeyError, TypeError):  # none, or not to be believed: it is made again
        return None


def _swap_in(folder: Path, outcome: Outcome, made_of: Mapping[str, Any]) -> None:
    """The new model in the place of an earlier one; a process killed in between leaves none, and all matches."""
    unfinished = folder / UNFINISHED
    (folder / OUTCOME).unlink(missing_ok=True)
    for name in (MODEL, DENSE):
        shutil.rmtree(folder / name, ignore_errors=True)
    for name in (MODEL, DATABASE):
        (unfinished / name).replace(folder / name)
    write_json(folder / OUTCOME, {"made_of": dict(made_of), "outcome": outcome.to_json()})
    shutil.rmtree(unfinished, ignore_errors=True)

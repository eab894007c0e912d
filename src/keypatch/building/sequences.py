"""HPatches strips from photos with known homographies: the same points in six photos, easy, hard and tough to match."""

import math
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.building.homographies import BuiltPatches, open_work, scaled_jitter
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.files import hold_chosen_folder, read_json, write_atomically, write_json
from keypatch.geometry import (
    Keypoints,
    PatchCutter,
    apply_homography,
    frame_overlap,
    jitter_keypoints,
    transform_keypoints,
)
from keypatch.images import listed, read_header, read_photo
from keypatch.patches.hpatches import STRIPS, is_sequence
from keypatch.patches.patch_set import write_set_card
from keypatch.patches.planar_sequences import PlanarSequence, read_planar_sequences
from keypatch.patches.single_photos import Making, find_points
from keypatch.patches.sources import SOURCES, Source, find_sources
from keypatch.progress import Callback, Progress, StopWish
from keypatch.provenance import provenance
from keypatch.settings import CheckedFields, brief, option

# Easy, hard and tough, as HPatches calls its strips: errors that make median overlaps of 0.85, 0.72 and 0.60
LEVELS = {"e": 0.5, "h": 1.0, "t": 1.55}
SIDE = 65
IMAGES = 5  # of a sequence, beside its first
STILL = 0.05  # of the diagonal: the corners of Oxford's bikes and trees move by 0.03, those of its wall by 0.13


@dataclass(frozen=True)
class Sequences(CheckedFields):
    """How HPatches strips are cut from photos with known homographies.

    >>> from keypatch.building.sequences import Sequences
    >>> Sequences(points=100).patch_sigmas
    10.0
    """

    points: int = option(1000, "Most points of a sequence.", least=1)
    smallest_sigma: float = option(3.0, "Smallest scale of a point in the first photo, in pixels.", above=0)
    largest_sigma: float = option(20.0, "Largest scale of a point in the first photo, in pixels.", above=0)
    contrast: float = option(0.015, "Contrast threshold of the detector (DoG).", least=0)
    overlap: float = option(0.5, "Most that the regions of two points share.", least=0, most=1)
    patch_sigmas: float = option(
        10.0, "Patch side in sigmas; HPatches cuts five times the scale to each side.", above=0
    )
    seed: int = option(0, "Random seed of the frames' errors.", least=0, below=2**31)

    __repr__ = brief


def build_from_sequences(
    folders: Sequence[str | Path],
    out: str | Path,
    options: Sequences = Sequences(),  # noqa: B008  a frozen value
    *,
    terms: str = "",
    card: Mapping[str, Any] | None = None,
    progress: Progress | Callback | None = None,
) -> BuiltPatches:
    """HPatches strips of sequences of six photos with known homographies (HPatches, Oxford), written to `out`.

    folders: such that hold sequences. A sequence becomes a folder of ref, e1..e5, h1..h5 and t1..t5, columns of 65x65
    patches, named i_ where the camera hardly moved and v_ where it did, unless its name says so already. Points are
    found in the first photo; kept are those whose region lies inside all six. A sequence that does not have six photos,
    or no such point, is told and left out. `progress` counts sequences.

    Raises:
        KeypatchError: no sequence is left, or the folder holds something else.
        Interrupted: Ctrl-C; the same call resumes.
    """
    told, place = Progress.of(progress), Path(out)
    sequences = [each for folder in folders for each in read_planar_sequences(folder)]
    names = [strip_name(each) for each in sequences]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise DataError(f"Two sequences would be named {twice}. Rename the folder of one of them.")
    with hold_chosen_folder(place):
        work = open_work(place, [asdict(options), names])
        left_out, facts, sources = dict[str, str](), dict[str, dict[str, Any]](), list[Source]()
        told.count(0, len(sequences), "sequences")
        with StopWish() as stop:
            for number, (name, sequence) in enumerate(zip(names, sequences, strict=True)):
                if stop:
                    raise Interrupted(f"{place} keeps the strips of {len(facts)} sequences")
                try:
                    facts[name] = _keep_strips(place, work, name, sequence, options)
                    inside = [photo._replace(name=f"{name}/{photo.path.name}") for photo in sequence.photos]
                    sources += find_sources(inside, terms)
                except DataError as error:
                    left_out[name] = str(error)
                    told.note(f"Left out: {error}")
                told.count(number + 1, len(sequences), "sequences")
        if not facts:
            raise KeypatchError(f"No sequence could be used: {listed(list(left_out.values()), ' ')}")
        written = {
            "made_by": "photos with known homographies, the frames with errors as in HPatches",
            SOURCES: [each.to_json() for each in sources],
            "left_out": left_out,
            "options": asdict(options),
            "patch_sigmas": options.patch_sigmas,
            "points": sum(each["points"] for each in facts.values()),
            "strips": facts,
            "provenance": provenance().to_json(),
            **(card or {}),
        }
        write_set_card(place, written)
        shutil.rmtree(work)
    return BuiltPatches(place, written, left_out)


def strip_name(sequence: PlanarSequence) -> str:
    """The name with i_ or v_ before it, as HPatches calls changed light and changed viewpoint."""
    if sequence.name.startswith(("i_", "v_")):
        return sequence.name
    return f"{'i' if _motion(sequence) < STILL else 'v'}_{sequence.name}"


def _motion(sequence: PlanarSequence) -> float:
    """How far the corners of the first photo move, in the mean over photos, as a share of its diagonal."""
    width, height = read_header(sequence.photos[0].path).size
    corners = np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]])
    moved = [np.linalg.norm(apply_homography(each, corners) - corners, axis=1).mean() for each in sequence.homographies]
    return float(np.mean(moved) / math.hypot(width, height))


def cut_strips(
    sequence: PlanarSequence,
    options: Sequences = Sequences(),  # noqa: B008  a frozen value
) -> tuple[dict[str, NDArray[np.uint8]], dict[str, float]]:
    """Patches (n, 65, 65) by strip, and the median overlap of the frames used with the true ones by level.

    A frame gets its errors in the first photo and is carried over by the homography, so that the overlap is the same
    in all photos.

    Raises:
        DataError: there are not six photos, or no point lies inside all of them.
    """
    folder = sequence.photos[0].path.parent
    if len(sequence.photos) != 1 + IMAGES:
        raise DataError(f"{folder} has {len(sequence.photos)} photos, but HPatches strips are of {1 + IMAGES}.")
    first = read_photo(sequence.photos[0].path)
    making = Making(
        points=options.points,
        smallest_sigma=options.smallest_sigma,
        contrast=options.contrast,
        overlap=options.overlap,
        patch_sigmas=options.patch_sigmas,
    )
    points = find_points(first, making, lambda found: _seen_by_all(found, sequence, options))
    if not len(points):
        raise DataError(f"{folder} has no point whose region lies inside all {1 + IMAGES} photos.")
    strips = {"ref": PatchCutter(first).cut(points, options.patch_sigmas, SIDE)}
    overlaps: dict[str, list[NDArray[np.float64]]] = {level: [] for level in LEVELS}
    for number, (photo, homography) in enumerate(zip(sequence.photos[1:], sequence.homographies, strict=True), start=1):
        cutter = PatchCutter(read_photo(photo.path))
        for place, (level, errors) in enumerate(LEVELS.items()):
            rng = np.random.default_rng([options.seed, crc32(sequence.name.encode()), number, place])
            used = jitter_keypoints(points, scaled_jitter(errors, options.patch_sigmas), rng)
            overlaps[level].append(frame_overlap(points, used, options.patch_sigmas / 2))
            there = transform_keypoints(homography, used)
            strips[f"{level}{number}"] = cutter.cut(there, options.patch_sigmas, SIDE)
    medians = {level: round(float(np.median(np.concatenate(each))), 4) for level, each in overlaps.items()}
    return {strip: strips[strip] for strip in STRIPS}, medians


def _seen_by_all(points: Keypoints, sequence: PlanarSequence, options: Sequences) -> NDArray[np.bool_]:
    """(n,) whether the region of a point lies inside every photo, in front of the camera, and is of the right scale."""
    half = options.patch_sigmas / 2
    corners = points.xy[:, None, :] + np.swapaxes(
        points.frames() @ (half * np.array([[-1, -1, 1, 1], [-1, 1, 1, -1]])), 1, 2
    )  # (n, 4, 2)
    middle = np.append((np.array(read_header(sequence.photos[0].path).size) - 1) / 2, 1)
    seen = points.sigma <= options.largest_sigma
    for photo, homography in zip(sequence.photos[1:], sequence.homographies, strict=True):
        width, height = read_header(photo.path).size
        carried = corners @ homography[:, :2].T + homography[:, 2]  # (n, 4, 3)
        depth = carried[:, :, 2] * np.sign(homography[2] @ middle)
        ahead = depth > 1e-9 * np.abs(carried).max(initial=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            xy = carried[:, :, :2] / carried[:, :, 2:]
        inside = np.all((xy >= 0) & (xy <= np.array([width - 1, height - 1])), axis=2)
        seen = seen & np.all(ahead & inside, axis=1)
    return np.asarray(seen)


def _keep_strips(out: Path, work: Path, name: str, sequence: PlanarSequence, options: Sequences) -> dict[str, Any]:
    """Write the strips of a sequence, all at once, unless they are there; what the card says of them."""
    note = work / f"{name}.json"
    if is_sequence(out / name) and note.exists():
        facts: dict[str, Any] = read_json(note)
        return facts
    strips, medians = cut_strips(sequence, options)
    shutil.rmtree(work / name, ignore_errors=True)
    for strip, patches in strips.items():
        with write_atomically(work / name / f"{strip}.png") as file:
            Image.fromarray(patches.reshape(-1, SIDE)).save(file, format="PNG")
    facts = {"points": len(strips["ref"]), "median_overlap": medians}
    write_json(note, facts)
    os.replace(work / name, out / name)
    return facts

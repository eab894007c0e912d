"""The method `sequences`: HPatches strips, easy, hard and tough, from six photos each with known homographies."""

import math
import os
import shutil
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.building.homographies import scaled_jitter
from keypatch.building.observations import Work, Written
from keypatch.building.options import Building
from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.files import make_folder, read_json, write_atomically, write_json
from keypatch.geometry import (
    Keypoints,
    PatchCutter,
    apply_homography,
    frame_overlap,
    jitter_keypoints,
    transform_keypoints,
)
from keypatch.images import Photo, listed, read_header, read_photo
from keypatch.patches.hpatches import STRIPS, is_sequence, read_sequences
from keypatch.patches.planar_sequences import PlanarSequence, read_planar_sequences
from keypatch.patches.single_photos import Making, find_points
from keypatch.progress import StopWish
from keypatch.settings import CheckedFields, brief, option

# Easy, hard and tough, as HPatches calls its strips: errors that make median overlaps of 0.85, 0.72 and 0.60
LEVELS = {"e": 0.5, "h": 1.0, "t": 1.55}
SIDE = 65
IMAGES = 5  # of a sequence, beside its first
SHOWN = 4  # points of a sequence, on the page
EXACT = "not estimated: labels are as exact as the homographies given"
STILL = 0.05  # of the diagonal: the corners of Oxford's bikes and trees move by 0.03, those of its wall by 0.13


@dataclass(frozen=True)
class Sequences(CheckedFields):
    """HPatches strips from sequences of six photos with known homographies (HPatches, Oxford).

    A sequence becomes a folder of ref, e1..e5, h1..h5 and t1..t5, columns of 65x65 patches, named i_ where the camera
    hardly moved and v_ where it did, unless its name says so already. Points are found in the first photo; those
    whose region lies inside all six are kept.

    >>> kp.Sequences(points=100).largest_sigma
    20.0
    """

    points: int = option(1000, "Maximum number of points per sequence.", least=1)
    smallest_sigma: float = option(3.0, "Smallest scale of a point in the first photo, in pixels.", above=0)
    largest_sigma: float = option(20.0, "Largest scale of a point in the first photo, in pixels.", above=0)
    contrast: float = option(0.015, "Contrast threshold of the detector (DoG).", least=0)
    overlap: float = option(0.5, "Largest overlap of the regions of two points.", least=0, most=1)

    __repr__ = brief

    least_photos: ClassVar[int] = 2
    side: ClassVar[float] = 10.0  # HPatches cuts five times the scale to each side
    unused: ClassVar[frozenset[str]] = frozenset(
        {"held_out", "masks", "pairs", "separation", "list_size", "root"}
        | {"descriptor", "extraction", "matching", "mapping"}
    )

    def inputs(self, given: Sequence[Path]) -> tuple[list[Photo], list[Path]]:
        """The photos of the sequences in these folders, and the files of their homographies."""
        sequences = _read(given)
        photos = [photo for name, sequence in sequences.items() for photo in _named(name, sequence)]
        own = {photo.path for photo in photos}
        return photos, [path for each in sequences.values() for path in each.files if path not in own]

    def write(self, work: Work, kept: Path, out: Path) -> Written:
        """A folder for each sequence; one that cannot be used is reported and left out."""
        sequences, usable = _read(work.given), {photo.path for photo in work.photos}
        facts, left_out, photos = dict[str, dict[str, Any]](), dict[str, str](), list[Photo]()
        shown = list[tuple[str, NDArray[np.uint8]]]()
        work.progress.count(0, len(sequences), "sequences")
        with StopWish() as stop:
            for number, (name, sequence) in enumerate(sequences.items(), start=1):
                if stop:
                    raise Interrupted(f"{work.folder} keeps the strips of {len(facts)} sequences")
                try:
                    _require_usable(sequence, usable)
                    facts[name] = _keep_strips(kept, out, name, sequence, self, work.building)
                    photos += _named(name, sequence)
                except DataError as error:
                    left_out[name] = str(error)
                    work.progress.say(f"Left out: {error}")
                work.progress.count(number, len(sequences), "sequences")
        if not facts:
            raise KeypatchError(f"No sequence could be used: {listed(list(left_out.values()), ' ')}")
        for name, strips in read_sequences(out):
            chosen = np.random.default_rng(work.building.seed).permutation(len(strips["ref"]))[:SHOWN]
            shown += [(f"{name} {row}", np.stack([strips[each][row] for each in STRIPS])) for row in sorted(chosen)]
        points = sum(each["points"] for each in facts.values())
        counts = {
            "patches": points * len(STRIPS),
            "classes": points,
            "class_sizes": {str(len(STRIPS)): points},
            "left_out": {"sequences": len(left_out)} if left_out else {},
        }
        return Written(photos, counts, {"strips": facts, "sequences_left_out": left_out}, shown, EXACT)


def _read(given: Sequence[Path]) -> dict[str, PlanarSequence]:
    """The sequences by the names of their strips."""
    found = dict[str, PlanarSequence]()
    for sequence in (each for folder in given for each in read_planar_sequences(folder)):
        name = strip_name(sequence)
        if name in found:
            raise DataError(f"Two sequences would be named {name}. Rename the folder of one of them.")
        found[name] = sequence
    return found


def _named(name: str, sequence: PlanarSequence) -> list[Photo]:
    """The photos below the name of the strips, as a card names them."""
    return [photo._replace(name=f"{name}/{photo.path.name}") for photo in sequence.photos]


def _require_usable(sequence: PlanarSequence, usable: Set[Path]) -> None:
    for photo in sequence.photos:
        if photo.path not in usable:
            raise DataError(f"{photo.path.parent} cannot be used without {photo.path.name}, which cannot be read.")


def strip_name(sequence: PlanarSequence) -> str:
    """The name with i_ or v_ before it, as HPatches calls changed light and changed viewpoint."""
    if sequence.name.startswith(("i_", "v_")):
        return sequence.name
    try:
        return f"{'i' if _motion(sequence) < STILL else 'v'}_{sequence.name}"
    except DataError:  # the first photo cannot be read, and the sequence will be left out
        return f"v_{sequence.name}"


def _motion(sequence: PlanarSequence) -> float:
    """How far the corners of the first photo move, in the mean over photos, as a share of its diagonal."""
    width, height = read_header(sequence.photos[0].path).size
    corners = np.array([[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]])
    moved = [np.linalg.norm(apply_homography(each, corners) - corners, axis=1).mean() for each in sequence.homographies]
    return float(np.mean(moved) / math.hypot(width, height))


def cut_strips(
    sequence: PlanarSequence,
    options: Sequences = Sequences(),  # noqa: B008  a frozen value
    building: Building = Building(patch_sigmas=Sequences.side),  # noqa: B008
) -> tuple[dict[str, NDArray[np.uint8]], dict[str, float]]:
    """Patches (n, 65, 65) by strip, and the median overlap of the frames used with the true ones by level.

    A frame gets its errors in the first photo and is carried over by the homography, so that the overlap is the same
    in all photos.

    Raises:
        DataError: there are not six photos, or no point lies inside all of them.
    """
    folder = sequence.photos[0].path.parent
    if len(sequence.photos) != 1 + IMAGES:
        raise DataError(f"{folder} has {len(sequence.photos)} photos, but HPatches strips need {1 + IMAGES}.")
    side, limit = building.side, building.pixel_limit
    first = read_photo(sequence.photos[0].path, pixel_limit=limit)
    making = Making(
        points=options.points,
        smallest_sigma=options.smallest_sigma,
        contrast=options.contrast,
        overlap=options.overlap,
        patch_sigmas=side,
    )
    points = find_points(first, making, lambda found: _seen_by_all(found, sequence, options, side))
    if not len(points):
        raise DataError(f"{folder} has no point whose region lies inside all {1 + IMAGES} photos.")
    strips = {"ref": PatchCutter(first).cut(points, side, SIDE)}
    overlaps: dict[str, list[NDArray[np.float64]]] = {level: [] for level in LEVELS}
    for number, (photo, homography) in enumerate(zip(sequence.photos[1:], sequence.homographies, strict=True), start=1):
        cutter = PatchCutter(read_photo(photo.path, pixel_limit=limit))
        for place, (level, errors) in enumerate(LEVELS.items()):
            rng = np.random.default_rng([building.seed, crc32(sequence.name.encode()), number, place])
            used = jitter_keypoints(points, scaled_jitter(errors, side), rng)
            overlaps[level].append(frame_overlap(points, used, side / 2))
            there = transform_keypoints(homography, used)
            strips[f"{level}{number}"] = cutter.cut(there, side, SIDE)
    medians = {level: round(float(np.median(np.concatenate(each))), 4) for level, each in overlaps.items()}
    return {strip: strips[strip] for strip in STRIPS}, medians


def _seen_by_all(points: Keypoints, sequence: PlanarSequence, options: Sequences, side: float) -> NDArray[np.bool_]:
    """(n,) whether the region of a point lies inside every photo, in front of the camera, and is of the right scale."""
    half = side / 2
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


def _keep_strips(
    kept: Path, out: Path, name: str, sequence: PlanarSequence, options: Sequences, building: Building
) -> dict[str, Any]:
    """Write the strips of a sequence, all at once, unless they are there; what the card says of them."""
    note, begun = kept / f"{name}.json", kept / name
    if is_sequence(out / name) and note.exists():
        facts: dict[str, Any] = read_json(note)
        return facts
    strips, medians = cut_strips(sequence, options, building)
    for folder in (begun, out / name):
        shutil.rmtree(folder, ignore_errors=True)
    for strip, patches in strips.items():
        with write_atomically(begun / f"{strip}.png") as file:
            Image.fromarray(patches.reshape(-1, SIDE)).save(file, format="PNG")
    facts = {"points": len(strips["ref"]), "median_overlap": medians}
    write_json(note, facts)
    os.replace(begun, make_folder(out) / name)
    return facts

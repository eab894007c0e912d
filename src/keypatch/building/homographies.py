"""Patches from single photos: their points in random views, with other light, blur, noise and compression."""

import hashlib
import json
import math
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from PIL import Image

from keypatch.errors import DataError, Interrupted, KeypatchError
from keypatch.files import hash_file, hold_chosen_folder, make_folder, read_json, reading, write_atomically, write_json
from keypatch.geometry import Jitter, Keypoints, ViewRange
from keypatch.images import PIXEL_LIMIT, Photo, listed, read_photo
from keypatch.patches.pair_lists import draw_pair_lists
from keypatch.patches.phototour import PATCH_SIDE, write_phototour
from keypatch.patches.single_photos import MadeClasses, Making, PhotoChanges, make_classes
from keypatch.patches.sources import SOURCES, Source, find_sources
from keypatch.progress import Callback, Progress, StopWish
from keypatch.provenance import provenance
from keypatch.settings import CheckedFields, brief, option

WORK = ".building"  # what a build keeps in its folder until it is whole
# Errors of a frame that make a median overlap of 0.72 with the true one, as HPatches' hard patches have, whatever the
# width of a patch: the shift is a share of it
_ERRORS = Jitter(angle=math.radians(15), log_scale=0.3, log_stretch=0.3, shift=2.1 / 24)


@dataclass(frozen=True)
class Homographies(CheckedFields):
    """How patches are made of single photos: random views, each with errors of the detector and changes of the picture.

    >>> from keypatch.building.homographies import Homographies
    >>> Homographies(views=4).points
    700
    """

    views: int = option(6, "Patches of a point: the photo itself and its random views.", least=2)
    points: int = option(700, "Most points of a photo.", least=1)
    smallest_sigma: float = option(1.2, "Smallest scale of a point, in pixels.", above=0)
    contrast: float = option(0.015, "Contrast threshold of the detector (DoG).", least=0)
    overlap: float = option(0.5, "Most that the regions of two points share.", least=0, most=1)
    turn: float = option(45.0, "Largest turn of a view, in degrees.", least=0, most=180)
    zoom: float = option(1.4, "Largest zoom of a view, in and out.", least=1)
    stretch: float = option(1.4, "Largest ratio of the axes of a view; 1.4 is a plane seen at 45 degrees.", least=1)
    perspective: float = option(0.2, "Largest change of depth from the centre to a corner.", least=0, below=1)
    jitter: float = option(0.5, "Errors of the frames, as a share of those of HPatches' hard patches.", least=0)
    blur: float = option(1.0, "Largest blur, sigma in pixels.", least=0)
    darkest: float = option(0.5, "Smallest factor on the light.", above=0)
    brightest: float = option(1.2, "Largest factor on the light.", above=0)
    gamma: float = option(1.4, "Largest change of gamma, both ways.", least=1)
    slope: float = option(0.4, "Largest fall of the light from the centre to an edge.", least=0, below=1)
    noise: float = option(6.0, "Largest noise, standard deviation in grey levels.", least=0)
    quality: int = option(30, "Lowest JPEG quality.", least=1, most=95)
    longest_side: int = option(2048, "Photos with a longer side are reduced to it first, in pixels.", least=128)
    patch_sigmas: float = option(24.0, "Patch side in sigmas.", above=0)
    list_size: int = option(10_000, "Most lines of each pair list, half of them matches.", least=2)
    seed: int = option(0, "Random seed of views, changes and pair lists.", least=0, below=2**31)

    __repr__ = brief

    def making(self) -> Making:
        """The same for `make_classes`."""
        return Making(
            views=self.views,
            points=self.points,
            smallest_sigma=self.smallest_sigma,
            contrast=self.contrast,
            overlap=self.overlap,
            jitter=scaled_jitter(self.jitter, self.patch_sigmas),
            view_range=ViewRange(math.radians(self.turn), (1 / self.zoom, self.zoom), self.stretch, self.perspective),
            changes=PhotoChanges(
                self.blur,
                (min(self.darkest, self.brightest), max(self.darkest, self.brightest)),
                (1 / self.gamma, self.gamma),
                self.slope,
                self.noise,
                (self.quality, 96),
            ),
            patch_sigmas=self.patch_sigmas,
        )


@dataclass(frozen=True)
class BuiltPatches:
    """What was written: the folder, its card, and the photos or sequences that were left out, with the reason."""

    folder: Path
    card: Mapping[str, Any]
    left_out: Mapping[str, str]


def scaled_jitter(hardness: float, patch_sigmas: float) -> Jitter:
    """The errors of HPatches' hard frames times a factor; their place by the width of the patch."""
    values = {name: hardness * value for name, value in asdict(_ERRORS).items()}
    return replace(Jitter(**values), shift=values["shift"] * patch_sigmas)


def build_from_homographies(
    photos: Sequence[Photo],
    out: str | Path,
    options: Homographies = Homographies(),  # noqa: B008  a frozen value
    *,
    terms: str = "",
    card: Mapping[str, Any] | None = None,
    pixel_limit: int = PIXEL_LIMIT,
    progress: Progress | Callback | None = None,
) -> BuiltPatches:
    """Patches of single photos in random views, written to `out` in PhotoTour layout with pair lists and a card.

    One photo is in memory at a time, and the patches of one. A photo that cannot be read is told and left out. The same
    photos, options and seed give the same bytes, also after a stop. terms: under which the photos may be used. card:
    further entries. `progress` counts photos.

    Raises:
        KeypatchError: no photo gave a point, or the folder holds another set.
        Interrupted: Ctrl-C; the same call resumes.
    """
    told, place = Progress.of(progress), Path(out)
    with hold_chosen_folder(place):
        work = open_work(place, [asdict(options), [photo.name for photo in photos]])
        parts, left_out = dict[Photo, Path](), dict[str, str]()
        told.count(0, len(photos), "photos")
        with StopWish() as stop:
            for number, photo in enumerate(photos):
                if stop:
                    raise Interrupted(f"{place} keeps the patches of {len(parts)} photos")
                try:
                    parts[photo] = _keep_part(work, photo, options, number, pixel_limit)
                except DataError as error:
                    left_out[photo.name] = str(error)
                    told.note(f"Left out: {error}")
                told.count(number + 1, len(photos), "photos")
        filled = {photo: part for photo, part in parts.items() if _rows(part)}
        left_out |= {photo.name: "no points" for photo in parts if photo not in filled}
        if not filled:
            raise KeypatchError(
                f"None of the {len(photos)} photos gave a point that fits: {listed(list(left_out))}. "
                "Lower contrast or smallest_sigma, or give photos with more texture."
            )
        told.note(f"Writing {sum(map(_rows, filled.values())):,} patches")
        sources = find_sources(filled, terms, pixel_limit)
        written = _write_set(work / "set", filled, options, sources, left_out, card or {})
        _move(work / "set", place)
        shutil.rmtree(work)
    return BuiltPatches(place, written, left_out)


def iterate_classes(
    photos: Sequence[Photo], options: Homographies, pixel_limit: int = PIXEL_LIMIT
) -> Iterator[tuple[Photo, MadeClasses]]:
    """Photo by photo its patches, point ids from 0 and keypoints; raises DataError where a photo cannot be read."""
    for number, photo in enumerate(photos):
        yield photo, _classes_of(photo, options, number, pixel_limit)


def _classes_of(photo: Photo, options: Homographies, number: int, pixel_limit: int) -> MadeClasses:
    grey = _reduced(read_photo(photo.path, pixel_limit=pixel_limit), options.longest_side)
    return make_classes([grey], options.making(), [options.seed, number])


def _reduced(grey: NDArray[np.uint8], longest: int) -> NDArray[np.uint8]:
    height, width = grey.shape
    factor = longest / max(height, width)
    if factor >= 1:
        return grey
    size = max(1, round(width * factor)), max(1, round(height * factor))
    return np.asarray(Image.fromarray(grey).resize(size, Image.Resampling.LANCZOS))


def _keep_part(work: Path, photo: Photo, options: Homographies, number: int, pixel_limit: int) -> Path:
    """The classes of a photo in a file of their own, made unless it is there, under the hash of the photo."""
    with reading(photo.path, "image"):
        path = work / f"{number:06d}-{hash_file(photo.path)[:16]}.npz"
    if not path.exists():
        made = _classes_of(photo, options, number, pixel_limit)
        columns: dict[str, Any] = {
            "patches": made.patches,
            "point_id": made.point_id,
            "view": made.image_id,
            "xy": made.keypoints.xy,
            "frames": made.keypoints.frames(),
            "overlap": made.overlap,
        }
        with write_atomically(path) as file:
            np.savez(file, **columns)
    return path


def _rows(part: Path) -> int:
    with np.load(part) as columns:
        return len(columns["point_id"])


def _write_set(
    out: Path,
    parts: Mapping[Photo, Path],
    options: Homographies,
    sources: Sequence[Source],
    left_out: Mapping[str, str],
    more: Mapping[str, Any],
) -> Mapping[str, Any]:
    """All parts one after the other; patches by way of a file, the rest is small."""
    counts = {photo: _rows(part) for photo, part in parts.items()}
    shutil.rmtree(out, ignore_errors=True)  # of a build that was killed here
    patches = npy.open_memmap(out.with_suffix(".npy"), "w+", np.uint8, (sum(counts.values()), PATCH_SIDE, PATCH_SIDE))
    point_id, image_id, places, frames, overlaps = [], [], [], [], []
    row = points = 0
    for number, (photo, part) in enumerate(parts.items()):
        with np.load(part) as columns:
            patches[row : row + counts[photo]] = columns["patches"]
            point_id.append(columns["point_id"] + points)
            image_id.append(columns["view"] + number * options.views)
            places.append(columns["xy"])
            frames.append(columns["frames"])
            overlaps.append(columns["overlap"][columns["view"] > 0])
        row += counts[photo]
        points += counts[photo] // options.views
    patches.flush()
    keypoints = Keypoints.from_frames(np.concatenate(places), np.concatenate(frames))
    every = np.concatenate(point_id)
    rng = np.random.default_rng([options.seed, len(parts)])
    card = {
        "made_by": "random views of single photos",
        SOURCES: [each.to_json() for each in sources],
        "left_out": dict(left_out),
        "options": asdict(options),
        "patch_sigmas": options.patch_sigmas,
        "patches": len(every),
        "points": points,
        "class_sizes": {str(options.views): points},
        "median_overlap": round(float(np.median(np.concatenate(overlaps))), 4),
        "image": f"number of the view: {options.views} to a photo, in the order of the sources; the first is the photo",
        "provenance": provenance().to_json(),
        **more,
    }
    write_phototour(
        out,
        patches,
        every,
        image_id=np.concatenate(image_id),
        keypoints=keypoints,
        pairs=draw_pair_lists(patches, every, options.list_size // 2, rng),
        card=card,
    )
    return card


def _move(made: Path, out: Path) -> None:
    """The files of a whole set into its folder; the one that makes it readable comes last."""
    for path in sorted(made.iterdir(), key=lambda path: path.name == "info.txt"):
        os.replace(path, out / path.name)


def open_work(out: Path, told: object) -> Path:
    """The folder of unfinished work, empty unless it is of a build that was told the same.

    Raises:
        KeypatchError: `out` holds something else than what the same build has begun to write.
    """
    work, now = out / WORK, hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
    record = work / "told.json"
    same = record.exists() and read_json(record) == now
    others = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
    if others and not same:
        raise KeypatchError(f"{out} is not empty ({listed(others)}). Choose another folder with --out, or remove it.")
    if not same:
        shutil.rmtree(work, ignore_errors=True)
        make_folder(work)
        write_json(record, now)
    return work

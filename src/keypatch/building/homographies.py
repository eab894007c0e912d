"""The method `homographies`: points of single photos in random views, with other light, blur, noise and compression."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.building.observations import Found, Observations, Work, unknown_views
from keypatch.building.options import SIDE, UNFINISHED
from keypatch.errors import KeypatchError
from keypatch.files import write_atomically
from keypatch.geometry import (
    Jitter,
    Keypoints,
    View,
    ViewRange,
    frame_overlap,
    jitter_keypoints,
    random_homography,
    transform_keypoints,
)
from keypatch.images import Photo, listed, read_header, read_mask, read_photo, require_masks
from keypatch.patches.single_photos import Making, PhotoChanges, change_photo, find_points, render_view
from keypatch.progress import track
from keypatch.settings import CheckedFields, brief, option

Grey = NDArray[np.uint8]

# Errors of a frame that make a median overlap of 0.72 with the true one, as HPatches' hard patches have, whatever the
# width of a patch: the shift is a share of it
_ERRORS = Jitter(angle=math.radians(15), log_scale=0.3, log_stretch=0.3, shift=2.1 / 24)
_VIEW, _CHANGE, _FRAMES = range(3)  # what random numbers of a view are for: each can be drawn again alone
_POINTS = "points"  # the folder of those that were found before a stop
_COLUMNS = ("x", "y", "sigma", "angle")  # what DoG finds
_EXACT = "none: labels are exact by construction, since the views are rendered"


@dataclass(frozen=True)
class Homographies(CheckedFields):
    """Classes from single photos: random views, each with simulated detector errors and image changes.

    >>> kp.Homographies(views=4).points
    700
    """

    views: int = option(6, "Patches per point: one from the photo itself, the others from random views.", least=2)
    points: int = option(700, "Maximum number of points per photo, or per sequence.", least=1)
    smallest_sigma: float = option(1.2, "Smallest scale of a point, in pixels of the (first) photo.", above=0)
    contrast: float = option(0.015, "Contrast threshold of the detector (DoG).", least=0)
    overlap: float = option(0.5, "Largest overlap of the regions of two points.", least=0, most=1)
    turn: float = option(45.0, "Largest rotation of a view, in degrees.", least=0, most=180)
    zoom: float = option(1.4, "Largest zoom of a view, in and out.", least=1)
    stretch: float = option(1.4, "Largest ratio of a view's axes; 1.4 is a plane seen at 45 degrees.", least=1)
    perspective: float = option(0.2, "Largest depth change from the centre to a corner.", least=0, below=1)
    jitter: float = option(0.5, "Frame errors, as a fraction of those in HPatches' hard patches.", least=0)
    blur: float = option(1.0, "Largest blur, as a sigma in pixels.", least=0)
    darkest: float = option(0.5, "Smallest brightness factor.", above=0)
    brightest: float = option(1.2, "Largest brightness factor.", above=0)
    gamma: float = option(1.4, "Largest gamma change, in either direction.", least=1)
    slope: float = option(0.4, "Largest brightness falloff from the centre to an edge.", least=0, below=1)
    noise: float = option(6.0, "Largest noise, as a standard deviation in grey levels.", least=0)
    quality: int = option(30, "Lowest JPEG quality.", least=1, most=95)
    longest_side: int = option(2048, "Shrink larger photos to this many pixels on the longer side first.", least=128)

    __repr__ = brief

    least_photos: ClassVar[int] = 1
    side: ClassVar[float] = SIDE
    unused: ClassVar[frozenset[str]] = frozenset({"pairs", "descriptor", "extraction", "matching", "mapping"})

    def find(self, work: Work) -> Found:
        """The points of each photo, and where its views show them; a view is rendered when it is cut."""
        building = work.building
        if building.masks is not None:
            require_masks(Path(building.masks), [photo.name for photo in work.photos])
        photos, parts, sizes, overlaps = list[Photo](), list[Observations](), list[tuple[int, int]](), list[float]()
        blank = list[str]()
        for number, photo in enumerate(track(work.photos, "photos searched for points", work.progress)):
            points, size = self._keep_points(work, number, photo)
            if not len(points):
                blank.append(photo.name)
                continue
            views = self._views(photo, size, building.seed)
            rows, overlap = self._observe(photo, points, views, len(photos), work)
            photos.append(photo)
            parts.append(rows)
            sizes += [size, *(view.size for view in views)]
            overlaps += overlap.tolist()
        if blank and photos:
            work.progress.say(f"Left out: {listed(blank)}: no suitable points.")
        if not photos:
            raise KeypatchError(
                f"No point in {listed(blank)} passes the thresholds. Lower --contrast or --smallest-sigma, or give "
                "photos with more texture."
            )
        read = lru_cache(maxsize=1)(lambda number: self._read(photos[number], work))  # its views come one by one
        facts = {"median overlap of frames": round(float(np.median(overlaps)), 4)}
        return Found(
            photos,
            np.array(sizes, np.int64),
            Observations.join(parts),
            lambda image: self._render(photos[image // self.views], image % self.views, read, image, building.seed),
            {"photos without a point that fits": len(blank)},
            facts,
            self.views,
            _EXACT,
        )

    def _read(self, photo: Photo, work: Work) -> Grey:
        return _reduced(read_photo(photo.path, pixel_limit=work.building.pixel_limit), self.longest_side)

    def _keep_points(self, work: Work, number: int, photo: Photo) -> tuple[Keypoints, tuple[int, int]]:
        """The points of a photo and the size (width, height) that they are found at; kept for a resumed build."""
        path = work.folder / UNFINISHED / _POINTS / f"{number:06d}.npz"
        if path.exists():
            with np.load(path) as kept:
                width, height = kept["size"].tolist()
                return Keypoints(*(kept[name] for name in _COLUMNS)), (width, height)
        grey = self._read(photo, work)
        size, making = (grey.shape[1], grey.shape[0]), self._making(work.building.side)
        points = find_points(grey, making, lambda found: _is_unmasked(found, photo, grey.shape, work))
        if len(points):
            with write_atomically(path) as file:
                np.savez(file, size=np.array(size), **{name: getattr(points, name) for name in _COLUMNS})
        return points, size

    def _making(self, patch_sigmas: float) -> Making:
        return Making(
            points=self.points,
            smallest_sigma=self.smallest_sigma,
            contrast=self.contrast,
            overlap=self.overlap,
            patch_sigmas=patch_sigmas,
        )

    def _views(self, photo: Photo, size: tuple[int, int], seed: int) -> list[View]:
        """All but the photo itself."""
        ranges = ViewRange(math.radians(self.turn), (1 / self.zoom, self.zoom), self.stretch, self.perspective)
        return [random_homography(_random(seed, photo, k, _VIEW), size, ranges) for k in range(1, self.views)]

    def _observe(
        self, photo: Photo, points: Keypoints, views: Sequence[View], number: int, work: Work
    ) -> tuple[Observations, NDArray[np.float64]]:
        """The points in the photo, the number-th, and in its views; the overlaps of frames used with the true ones."""
        side, seed = work.building.side, work.building.seed
        jitter, frames, overlaps = scaled_jitter(self.jitter, side), [points], list[NDArray[np.float64]]()
        for k, view in enumerate(views, start=1):
            exact = transform_keypoints(view.homography, points)
            used = jitter_keypoints(exact, jitter, _random(seed, photo, k, _FRAMES))
            frames.append(used)
            overlaps.append(frame_overlap(exact, used, side / 2))
        count = len(points) * self.views
        place = np.zeros((count, 3))
        place[:, :2] = np.tile(points.xy, (self.views, 1))
        rows = Observations(
            keypoints=Keypoints.from_frames(
                np.concatenate([each.xy for each in frames]), np.concatenate([each.frames() for each in frames])
            ),
            point_id=np.tile(np.arange(len(points)), self.views),
            image_id=number * self.views + np.repeat(np.arange(self.views), len(points)),
            error=np.zeros(count),
            place=place,
            scene=np.full(count, number),
            **unknown_views(count),
        )
        return rows, np.concatenate(overlaps)

    def _render(self, photo: Photo, view: int, read: Callable[[int], Grey], image: int, seed: int) -> Grey:
        grey = read(image // self.views)
        if not view:
            return grey
        height, width = grey.shape
        shown = render_view(grey, self._views(photo, (width, height), seed)[view - 1])
        changes = PhotoChanges(
            self.blur,
            (min(self.darkest, self.brightest), max(self.darkest, self.brightest)),
            (1 / self.gamma, self.gamma),
            self.slope,
            self.noise,
            (self.quality, 96),
        )
        return change_photo(shown, changes, _random(seed, photo, view, _CHANGE))


def scaled_jitter(hardness: float, patch_sigmas: float) -> Jitter:
    """The errors of HPatches' hard frames times a factor; their place by the width of the patch."""
    values = {name: hardness * value for name, value in asdict(_ERRORS).items()}
    return replace(Jitter(**values), shift=values["shift"] * patch_sigmas)


def _random(seed: int, photo: Photo, view: int, purpose: int) -> np.random.Generator:
    """By the photo's name: its patches are the same whatever other photos there are."""
    return np.random.default_rng([seed, crc32(photo.name.encode(errors="replace")), view, purpose])


def _reduced(grey: Grey, longest: int) -> Grey:
    height, width = grey.shape
    factor = longest / max(height, width)
    if factor >= 1:
        return grey
    size = max(1, round(width * factor)), max(1, round(height * factor))
    return np.asarray(Image.fromarray(grey).resize(size, Image.Resampling.LANCZOS))


def _is_unmasked(points: Keypoints, photo: Photo, shape: tuple[int, ...], work: Work) -> NDArray[np.bool_]:
    """(n,) whether the mask of the photo, as large as the photo was before it was reduced, keeps each point."""
    from keypatch.features.extraction import is_inside_mask

    masks = work.building.masks
    mask = None if masks is None else read_mask(Path(masks), photo.name, read_header(photo.path).size[::-1])
    if mask is None:
        return np.ones(len(points), np.bool_)
    reduced = Image.fromarray(mask).resize((shape[1], shape[0]), Image.Resampling.NEAREST)
    return is_inside_mask(points, np.asarray(reduced, np.bool_))

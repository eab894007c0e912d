"""Observations: which keypoint of which photo shows which point. What every method finds, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from keypatch.geometry import Keypoints
from keypatch.images import Photo

if TYPE_CHECKING:
    from keypatch.building.options import Building
    from keypatch.describers.protocol import Describer
    from keypatch.engines import Parallel
    from keypatch.features.extraction import Extraction
    from keypatch.matching.matching import Matching
    from keypatch.progress import Progress
    from keypatch.reconstruction.mapping import Mapping as MapperOptions

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

SAME_SCALE = 1.5  # points at one place whose scales differ by more than half an octave show different things


@dataclass(frozen=True, eq=False)
class Work:
    """What a method is given: the photos that can be read, a folder to keep its files in, how to describe and match."""

    given: Sequence[Path]  # what the caller named
    photos: Sequence[Photo]
    root: Path  # that the photos' names are below
    folder: Path
    building: Building
    extraction: Extraction
    matching: Matching | None  # None: the method's own
    mapping: MapperOptions
    describer: Describer | str | Path
    device: str
    precision: str
    progress: Progress
    parallel: Parallel


@dataclass(frozen=True, eq=False)
class Observations:
    """Rows of one length n; rows with the same `point_id` show the same point."""

    keypoints: Keypoints
    point_id: Int64  # (n,) any numbers
    image_id: Int64  # (n,) position among the images: the photos, or the views of each
    error: Float64  # (n,) how far off the place is, pixels: of two rows of a point in one photo the smaller stays
    place: Float64  # (n, 3) of the point, for a split by region, whatever the unit
    scene: Int64  # (n,) points of different scenes share no photo
    ray: Float64  # (n, 3) unit vector from the point to the camera; nan where it is not known
    upward: Float64  # (n, 3) unit vector: the keypoint's x axis in space, across the ray; nan where it is not known
    reach: Float64  # (n,) what a pixel covers at the point, in units of the place; nan where it is not known

    def __len__(self) -> int:
        return len(self.point_id)

    @property
    def points(self) -> int:
        return len(np.unique(self.point_id))

    def take(self, rows: NDArray[Any]) -> Observations:
        """The rows chosen by a mask or by numbers."""
        return Observations(self.keypoints.take(rows), *(getattr(self, name)[rows] for name in _COLUMNS))

    @classmethod
    def join(cls, parts: Sequence[Observations]) -> Observations:
        """One after the other, the points of each numbered on from those before; they must be numbered from 0."""
        starts = np.cumsum([0, *(each.points for each in parts[:-1])])
        numbered = [replace(each, point_id=each.point_id + start) for each, start in zip(parts, starts, strict=True)]
        columns = (np.concatenate([getattr(each, name) for each in numbered]) for name in _COLUMNS)
        return cls(Keypoints.join([each.keypoints for each in parts]), *columns)

    def by_image(self) -> Iterator[tuple[int, Int64]]:
        """The images that have rows, and the positions of these, both in order."""
        order = np.argsort(self.image_id, kind="stable")
        images, starts = np.unique(self.image_id[order], return_index=True)
        yield from zip(images.tolist(), np.split(order, starts[1:]), strict=True)

    def numbered(self) -> Observations:
        """The points numbered from 0."""
        return replace(self, point_id=np.unique(self.point_id, return_inverse=True)[1].astype(np.int64))


_COLUMNS = tuple(Observations.__dataclass_fields__)[1:]


@dataclass(frozen=True, eq=False)
class Found:
    """What a method found in the photos."""

    photos: Sequence[Photo]
    sizes: NDArray[np.int64]  # (images, 2) width and height
    rows: Observations
    read: Callable[[int], NDArray[np.uint8]]  # the grey image at this position
    counts: Mapping[str, int]  # what was left out and why, in the order of the steps
    facts: Mapping[str, Any]  # about how they were found, for the card
    views: int = 1  # images of a photo: image i is view i % views of photo i // views, and view 0 the photo itself
    exact: str = ""  # why the label noise is not estimated, as the card states it; empty where it is

    def image_names(self) -> list[str]:
        return [
            f"{photo.name} view {view}" if view else photo.name for photo in self.photos for view in range(self.views)
        ]


@dataclass(frozen=True, eq=False)
class Written:
    """What a method with a layout of its own has written."""

    photos: Sequence[Photo]  # that it used
    counts: Mapping[str, Any]  # "patches", "classes", "class_sizes", "left_out", for the card
    entries: Mapping[str, Any]  # more of them for the card
    shown: Sequence[tuple[str, NDArray[np.uint8]]]  # labels and patches (n, h, w) side by side, for the page
    exact: str  # why the label noise is not estimated, as the card states it


class Method(Protocol):
    """A way to build a set; a frozen dataclass whose fields are its options."""

    least_photos: ClassVar[int]
    side: ClassVar[float]  # of its patches, in sigmas, unless `Building` says otherwise
    unused: ClassVar[frozenset[str]]  # fields of `Building`, and other arguments of `build`, that mean nothing to it


@runtime_checkable
class Finder(Method, Protocol):
    """A method that finds observations, which `build` settles, cuts, splits and writes in PhotoTour layout."""

    def find(self, work: Work) -> Found:
        """Raises KeypatchError, saying which step found nothing, where there are none."""


@runtime_checkable
class Writer(Method, Protocol):
    """A method whose layout is its own."""

    def inputs(self, given: Sequence[Path]) -> tuple[list[Photo], list[Path]]:
        """The photos, named as in the card, and the other files that the set depends on; raises DataError."""

    def write(self, work: Work, kept: Path, out: Path) -> Written:
        """Writes the set into the folder `out`; `kept` is for notes that a resumed build finds again.

        Raises:
            KeypatchError: nothing could be written.
            Interrupted: Ctrl-C; the same call resumes.
        """


def unknown_views(length: int) -> dict[str, Float64]:
    """The columns of views whose cameras are not known."""
    return {
        "ray": np.full((length, 3), np.nan),
        "upward": np.full((length, 3), np.nan),
        "reach": np.full(length, np.nan),
    }


def settle(found: Found, building: Building) -> Found:
    """What makes a set: patches inside their photos, a point once in a photo and under one number, two patches or more.

    The rows come out point by point, numbered from 0, each point's photos in their order.
    """
    counts, rows = dict(found.counts), found.rows

    def keep(name: str, kept: NDArray[np.bool_]) -> None:
        nonlocal rows
        counts[name] = counts.get(name, 0) + int(np.sum(~kept))
        rows = rows.take(kept)

    keep("patches beyond the photo's edge", is_inside(rows, found.sizes, building.side))
    keep("observations of a point twice in a photo", once_per_photo(rows))
    keep("observations alone of their point", has_company(rows))
    lesser = rival_points(rows, building.separation)
    counts["points at the place of another (second orientations, duplicates)"] = len(lesser)
    rows = rows.take(~np.isin(rows.point_id, lesser))
    order = np.lexsort((rows.image_id, rows.point_id))
    return replace(found, rows=rows.take(order).numbered(), counts=counts)


def is_inside(rows: Observations, sizes: NDArray[np.int64], patch_sigmas: float) -> NDArray[np.bool_]:
    """(n,) whether all four corners of the patch lie inside the photo."""
    corners = patch_sigmas / 2 * np.array([[-1, -1, 1, 1], [-1, 1, 1, -1]])
    reached = rows.keypoints.xy[:, :, None] + rows.keypoints.frames() @ corners  # (n, 2, 4)
    limits = sizes[rows.image_id][:, :, None] - 0.5
    return np.asarray(np.all((reached >= -0.5) & (reached <= limits), axis=(1, 2)))


def once_per_photo(rows: Observations) -> NDArray[np.bool_]:
    """(n,) the row of the smallest error of each point in each photo."""
    order = np.lexsort((rows.error, rows.image_id, rows.point_id))
    point, image = rows.point_id[order], rows.image_id[order]
    first = np.ones(len(order), np.bool_)
    first[1:] = (point[1:] != point[:-1]) | (image[1:] != image[:-1])
    kept = np.zeros(len(order), np.bool_)
    kept[order[first]] = True
    return kept


def has_company(rows: Observations, least: int = 2) -> NDArray[np.bool_]:
    """(n,) whether the row's point has so many rows."""
    _, inverse, sizes = np.unique(rows.point_id, return_inverse=True, return_counts=True)
    return np.asarray(sizes[inverse] >= least)


def coinciding_points(rows: Observations, separation: float, same_scale: float = SAME_SCALE) -> Int64:
    """(m, 2) pairs of points that are seen, in some photo, nearer than `separation` sigmas, at about one scale."""
    pairs = list[Int64]()
    for _, here in rows.by_image():
        xy, sigma, point = rows.keypoints.xy[here], rows.keypoints.sigma[here].astype(np.float64), rows.point_id[here]
        tree = cKDTree(xy)
        # by the smaller of two scales: at most its reach, so it is enough to look around each by its own
        near = tree.query_ball_point(xy, np.maximum(separation * sigma, 1e-6) * same_scale)
        one = np.repeat(np.arange(len(here)), [len(each) for each in near])
        other = np.fromiter((j for each in near for j in each), np.int64, count=len(one))
        apart = np.linalg.norm(xy[one] - xy[other], axis=1)
        ratio = np.maximum(sigma[one], sigma[other]) / np.minimum(sigma[one], sigma[other])
        both = (apart <= separation * np.minimum(sigma[one], sigma[other])) & (ratio <= same_scale)
        both &= point[one] < point[other]
        pairs.append(np.stack([point[one[both]], point[other[both]]], axis=1))
    joined = np.concatenate([*pairs, np.empty((0, 2), np.int64)])
    return np.asarray(np.unique(joined, axis=0), np.int64)


def rival_points(rows: Observations, separation: float) -> Int64:
    """The points to leave out, so that no two that are left coincide: those seen less, or less exactly."""
    pairs = coinciding_points(rows, separation)
    if not len(pairs):
        return np.empty(0, np.int64)
    points, inverse, sizes = np.unique(rows.point_id, return_inverse=True, return_counts=True)
    error = np.bincount(inverse, rows.error) / sizes
    rank = np.empty(len(points), np.int64)
    rank[np.lexsort((points, error, -sizes))] = np.arange(len(points))
    rivals = dict[int, list[int]]()
    for one, other in np.searchsorted(points, pairs).tolist():
        rivals.setdefault(one, []).append(other)
        rivals.setdefault(other, []).append(one)
    gone = set[int]()
    for point in sorted(rivals, key=lambda each: int(rank[each])):
        if point not in gone:
            gone.update(rivals[point])
    return np.asarray(points[sorted(gone)], np.int64)

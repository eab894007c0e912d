"""Patches with the points they show, their classes, test pairs, and several sets as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError
from keypatch.files import Format, write_json

if TYPE_CHECKING:
    from keypatch.geometry.keypoints import Keypoints

FORMAT = Format("keypatch-patch-set", 1, "card of a patch set")


@dataclass(frozen=True, eq=False)
class PatchSet:
    """Patches, usually grey; those with the same `point_id` show the same 3D point, or are images of one class.

    >>> import numpy as np
    >>> patches = kp.PatchSet("mine", np.zeros((4, 64, 64), np.uint8), point_id=np.array([0, 0, 1, 1]))
    >>> len(patches), patches.side
    (4, 64)
    """

    name: str
    patches: NDArray[np.uint8]  # (n, side, side), or (n, 3, side, side) in colour; usually memory-mapped
    point_id: NDArray[np.int64]  # (n,), any integers
    image_id: NDArray[np.int64] | None = None  # (n,)
    keypoints: Keypoints | None = None
    folder: Path | None = None
    card: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = self.patches.shape
        if self.patches.dtype != np.uint8 or len(shape) < 3 or shape[1:-2] not in ((), (3,)) or shape[-2] != shape[-1]:
            raise DataError(
                f"{self.name}: patches must be uint8 of shape (n, side, side), or (n, 3, side, side) in colour, not "
                f"{self.patches.dtype} of {shape}."
            )
        for column in ("point_id", "image_id", "keypoints"):
            values = getattr(self, column)
            if values is not None and len(values) != len(self):
                raise DataError(f"{self.name}: {len(self)} patches but {len(values)} values of {column}.")

    def __len__(self) -> int:
        return len(self.patches)

    @property
    def side(self) -> int:
        return int(self.patches.shape[-1])

    @property
    def channels(self) -> int:
        return 1 if self.patches.ndim == 3 else 3

    def take(self, indices: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
        """Patches by index, copied into memory: indices of any shape -> uint8 (*shape, [3,] side, side)."""
        taken: NDArray[np.uint8] = np.asarray(self.patches)[indices]
        return taken

    def classes(self) -> Classes:
        return classes_of(self.point_id, self.name)


@dataclass(frozen=True, eq=False)
class Classes:
    """The points with at least two patches: class k is `members[starts[k]:starts[k + 1]]`, indices into the set."""

    members: NDArray[np.int64]
    starts: NDArray[np.int64]  # (count + 1,)
    skipped: int  # points with a single patch, left out

    @property
    def count(self) -> int:
        return len(self.starts) - 1


@dataclass(frozen=True, eq=False)
class Pairs:
    """A test list: pairs of patch indices, and whether both show the same point."""

    name: str
    first: NDArray[np.int64]  # (m,)
    second: NDArray[np.int64]  # (m,)
    is_match: NDArray[np.bool_]  # (m,)

    def __len__(self) -> int:
        return len(self.first)


def classes_of(point_id: NDArray[np.int64], name: str) -> Classes:
    """Classes in the order of their point ids, members in the order of the set.

    Raises:
        DataError: fewer than two points have two patches, so that nothing could be told apart.
    """
    order = np.argsort(point_id, kind="stable")
    _, sizes = np.unique(point_id, return_counts=True)
    kept = sizes >= 2
    if kept.sum() < 2:
        raise DataError(
            f"{name}: {kept.sum()} of {len(sizes)} points have two or more patches, but at least two such points are "
            "needed. Check the point ids (PhotoTour: the first column of info.txt)."
        )
    members = order[np.repeat(kept, sizes)]
    starts = np.concatenate([[0], np.cumsum(sizes[kept])])
    return Classes(members.astype(np.int64), starts.astype(np.int64), skipped=int(np.sum(~kept)))


class PatchSource(Protocol):
    """What training needs of patches; a PatchSet is one."""

    @property
    def name(self) -> str: ...
    @property
    def side(self) -> int: ...
    @property
    def point_id(self) -> NDArray[np.int64]: ...
    def __len__(self) -> int: ...
    def take(self, indices: NDArray[np.integer[Any]]) -> NDArray[np.uint8]: ...
    def classes(self) -> Classes: ...


@dataclass(frozen=True, eq=False)
class JoinedSets:
    """Sets one after the other; point ids are renumbered, so that no two sets share a point."""

    sets: tuple[PatchSet, ...]
    point_id: NDArray[np.int64]  # (n,)
    starts: NDArray[np.int64]  # (sets + 1,), index of each set's first patch

    @property
    def name(self) -> str:
        return "+".join(each.name for each in self.sets)

    @property
    def side(self) -> int:
        return min(each.side for each in self.sets)

    def __len__(self) -> int:
        return len(self.point_id)

    def take(self, indices: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
        """As `PatchSet.take`; larger patches are reduced to the smallest side of all sets, bilinear."""
        wanted = np.asarray(indices)
        if wanted.size and (wanted.min() < 0 or wanted.max() >= len(self)):
            raise IndexError(f"patch indices must be in 0..{len(self) - 1}, found {wanted.min()}..{wanted.max()}")
        planes = self.sets[0].patches.shape[1:-2]  # the same in all sets
        taken = np.empty((*wanted.shape, *planes, self.side, self.side), np.uint8)
        owner = np.searchsorted(self.starts, wanted, side="right") - 1
        for number, each in enumerate(self.sets):
            mine = owner == number
            taken[mine] = reduce_patches(each.take(wanted[mine] - self.starts[number]), self.side)
        return taken

    def classes(self) -> Classes:
        return classes_of(self.point_id, self.name)


def join_sets(sets: Sequence[PatchSet]) -> PatchSet | JoinedSets:
    """One source of patches from one or several sets.

    Raises:
        DataError: there are none, one folder is given twice, so that its points would pass for different ones, or some
            are grey and others in colour.
    """
    if not sets:
        raise DataError("No patch set was given. Name at least one folder.")
    if len(sets) == 1:
        return sets[0]
    folders = [each.folder.resolve() for each in sets if each.folder is not None]
    twice = next((folder for folder in folders if folders.count(folder) > 1), None)
    if twice is not None:
        raise DataError(f"{twice} was given twice; its points would count as different ones. Name each set once.")
    if len({each.channels for each in sets}) > 1:
        named = {each.channels: each.name for each in sets}
        raise DataError(f"{named[1]} is grey and {named[3]} is in colour. Train on one of them, or use a grey network.")
    ids, first = [], 0
    for each in sets:
        points, dense = np.unique(each.point_id, return_inverse=True)
        ids.append(dense + first)
        first += len(points)
    starts = np.cumsum([0, *(len(each) for each in sets)])
    return JoinedSets(tuple(sets), np.concatenate(ids).astype(np.int64), starts.astype(np.int64))


def reduce_patches(patches: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    """(n, [3,] side, side) by OpenCV's 8-bit bilinear resize; patches of that side stay as they are."""
    before = patches.shape[-1]
    if before == side:
        return patches
    import cv2

    reduced = np.empty((*patches.shape[:-2], side, side), np.uint8)
    for source, target in zip(patches.reshape(-1, before, before), reduced.reshape(-1, side, side), strict=True):
        cv2.resize(source, (side, side), dst=target, interpolation=cv2.INTER_LINEAR)
    return reduced


def write_set_card(folder: Path, card: Mapping[str, Any]) -> None:
    write_json(folder / "card.json", {**FORMAT.head(), **card})


def read_set_card(folder: Path) -> dict[str, Any]:
    """The card of a folder; empty where there is none, as in published sets."""
    path = folder / "card.json"
    return FORMAT.read_json(path) if path.exists() else {}

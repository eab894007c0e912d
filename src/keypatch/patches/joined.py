"""Several patch sets as one."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError
from keypatch.patches.patch_set import Classes, PatchSet, classes_of


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
    """Sets one after the other; point ids are numbered anew, so that no point of one set meets one of another."""

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
        taken = np.empty((*wanted.shape, self.side, self.side), np.uint8)
        owner = np.searchsorted(self.starts, wanted, side="right") - 1
        for number, each in enumerate(self.sets):
            mine = owner == number
            taken[mine] = _reduce(each.take(wanted[mine] - self.starts[number]), self.side)
        return taken

    def classes(self) -> Classes:
        return classes_of(self.point_id, self.name)


def join_sets(sets: Sequence[PatchSet]) -> PatchSource:
    """One source of patches from one or several sets.

    Raises:
        DataError: there are none, or one folder is given twice: its points would pass for different ones.
    """
    if not sets:
        raise DataError("No patch set was given. Name at least one folder.")
    if len(sets) == 1:
        return sets[0]
    folders = [each.folder.resolve() for each in sets if each.folder is not None]
    twice = next((folder for folder in folders if folders.count(folder) > 1), None)
    if twice is not None:
        raise DataError(f"{twice} was given twice; its points would count as different ones. Name each set once.")
    ids, first = [], 0
    for each in sets:
        points, dense = np.unique(each.point_id, return_inverse=True)
        ids.append(dense + first)
        first += len(points)
    starts = np.cumsum([0, *(len(each) for each in sets)])
    return JoinedSets(tuple(sets), np.concatenate(ids).astype(np.int64), starts.astype(np.int64))


def _reduce(patches: NDArray[np.uint8], side: int) -> NDArray[np.uint8]:
    if patches.shape[-1] == side:
        return patches
    import cv2

    reduced = np.empty((len(patches), side, side), np.uint8)
    for source, target in zip(patches, reduced, strict=True):
        cv2.resize(source, (side, side), dst=target, interpolation=cv2.INTER_LINEAR)
    return reduced

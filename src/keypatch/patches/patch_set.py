"""Patches with the points they show, their classes, and test pairs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError

if TYPE_CHECKING:
    from keypatch.geometry.keypoints import Keypoints


@dataclass(frozen=True, eq=False)
class PatchSet:
    """Grey patches; patches with the same `point_id` show the same 3D point."""

    name: str
    patches: NDArray[np.uint8]  # (n, side, side), usually memory-mapped
    point_id: NDArray[np.int64]  # (n,), any integers
    image_id: NDArray[np.int64] | None = None  # (n,)
    keypoints: Keypoints | None = None
    folder: Path | None = None
    card: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        shape = self.patches.shape
        if self.patches.dtype != np.uint8 or len(shape) != 3 or shape[1] != shape[2]:
            raise DataError(
                f"{self.name}: patches must be uint8 of shape (n, side, side), not {self.patches.dtype} of {shape}."
            )
        for column in ("point_id", "image_id", "keypoints"):
            values = getattr(self, column)
            if values is not None and len(values) != len(self):
                raise DataError(f"{self.name}: {len(self)} patches but {len(values)} values of {column}.")

    def __len__(self) -> int:
        return len(self.patches)

    @property
    def side(self) -> int:
        return int(self.patches.shape[1])

    def take(self, indices: NDArray[np.integer[Any]]) -> NDArray[np.uint8]:
        """Patches by index, copied into memory: indices of any shape -> uint8 (*shape, side, side)."""
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
            f"{name}: {kept.sum()} of {len(sizes)} points have two patches or more, but at least two such points are "
            "needed. Check the point ids (PhotoTour: the first column of info.txt)."
        )
    members = order[np.repeat(kept, sizes)]
    starts = np.concatenate([[0], np.cumsum(sizes[kept])])
    return Classes(members.astype(np.int64), starts.astype(np.int64), skipped=int(np.sum(~kept)))

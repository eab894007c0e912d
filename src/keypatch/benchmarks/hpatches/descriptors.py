"""The descriptors of HPatches strips in one array, the patches they come from, and their optional whitening."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.patches.hpatches import STRIPS, read_strip
from keypatch.patches.patch_set import reduce_patches

LEVELS = ("e", "h", "t")  # easy, hard, tough: how far the frames were moved before cutting
IMAGES = 5  # beside the reference
SIDE = 64
Integers = NDArray[np.integer]
KEPT = 0.6  # eigenvalues below the one at this place among the sorted are raised to it


@dataclass(frozen=True, eq=False)
class StripDescriptors:
    """Sequence by sequence, in each the 16 strips in the order of STRIPS, in each the rows of the strip."""

    names: tuple[str, ...]
    counts: NDArray[np.int64]  # (sequences,) rows of a strip
    rows: NDArray[np.float32]  # (16 * counts.sum(), dim)

    @property
    def starts(self) -> NDArray[np.int64]:
        return len(STRIPS) * (np.cumsum(self.counts) - self.counts)

    def places(self, sequence: Integers, level: int, image: Integers, row: Integers) -> NDArray[np.int64]:
        """Where in `rows` the patches are; image 0 is ref at every level, image k of level 0 is e<k>."""
        strip = np.where(image == 0, 0, IMAGES * level + image)
        return np.asarray(self.starts[sequence] + strip * self.counts[sequence] + row, np.int64)

    def strip(self, sequence: int, strip: int) -> NDArray[np.float32]:
        """(rows, dim): strip 0 is ref, 1 to 5 are e1 to e5, and so on."""
        start = self.starts[sequence] + strip * self.counts[sequence]
        return self.rows[start : start + self.counts[sequence]]


@dataclass(eq=False)
class StripPatches:
    """The patches of strips one after the other, at 64x64; a strip is read when its first patch is asked for."""

    folder: Path
    strips: Sequence[tuple[str, str]]  # (sequence, strip)
    counts: NDArray[np.int64]  # (strips,)
    _number: int = field(default=-1, init=False)  # of the strip read last
    _patches: NDArray[np.uint8] = field(default_factory=lambda: np.empty((0, SIDE, SIDE), np.uint8), init=False)

    def __len__(self) -> int:
        return int(self.counts.sum())

    def take(self, indices: NDArray[np.int64]) -> NDArray[np.uint8]:
        taken = np.empty((len(indices), SIDE, SIDE), np.uint8)
        ends = np.cumsum(self.counts)
        numbers = np.searchsorted(ends, indices, side="right")
        for number in np.unique(numbers):
            if number != self._number:
                self._patches = reduce_patches(read_strip(self.folder, *self.strips[number]), SIDE)
                self._number = number
            chosen = numbers == number
            taken[chosen] = self._patches[indices[chosen] - (ends[number] - self.counts[number])]
        return taken


def find_whitening(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """(dim, dim) of training descriptors (n, dim): V diag(eigenvalue ** -1/2) V' of their covariance."""
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    eigenvalues, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    raised = np.maximum(eigenvalues, np.sort(eigenvalues)[int(KEPT * len(eigenvalues))])
    with np.errstate(divide="ignore", invalid="ignore"):  # constant descriptors end as zeros
        return np.asarray((vectors / np.sqrt(raised)) @ vectors.T)


def whiten(descriptors: StripDescriptors, whitening: NDArray[np.float64]) -> StripDescriptors:
    """Every strip less its own mean, whitened, signed square roots, unit length; a row without direction is zeros."""
    rows = np.empty_like(descriptors.rows)
    start = 0
    for count in np.repeat(descriptors.counts, len(STRIPS)).tolist():
        part = descriptors.rows[start : start + count]
        with np.errstate(invalid="ignore"):
            whitened = (part - part.mean(axis=0, dtype=np.float64)) @ whitening
        rooted = np.sign(whitened) * np.sqrt(np.abs(whitened))
        lengths = np.linalg.norm(rooted, axis=1, keepdims=True)
        known = np.isfinite(lengths) & (lengths > 0)
        rows[start : start + count] = np.divide(rooted, lengths, out=np.zeros_like(rooted), where=known)
        start += count
    return StripDescriptors(descriptors.names, descriptors.counts, rows)

"""A regular grid of places: dense description."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from keypatch.detection.protocol import require_grey
from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints


@dataclass(frozen=True)
class Grid:
    """Upright places every `step` pixels, centred in the photograph, all of one sigma and one response.

    They come coarse to fine, so that any budget, which keeps the first of equals, covers the whole photograph.
    """

    name: ClassVar[str] = "grid"

    step: float = 16.0
    sigma: float = 2.0

    def __post_init__(self) -> None:
        if not 1 <= self.step < np.inf:
            raise KeypatchError(f"The grid's step is {self.step} pixels; it must be 1 or more.")
        if not 0 < self.sigma < np.inf:
            raise KeypatchError(f"The grid's sigma is {self.sigma} pixels; it must be above 0.")

    def __call__(self, image: NDArray[np.uint8]) -> Keypoints:
        require_grey(image, "The grid")
        rows, columns = (int((side - 1) // self.step) + 1 for side in image.shape)
        row, column = np.divmod(np.arange(rows * columns), columns)
        order = np.argsort(_coarse_to_fine(row, column))
        margin_y, margin_x = ((side - 1) % self.step / 2 for side in image.shape)
        x, y = margin_x + self.step * column[order], margin_y + self.step * row[order]
        ones = np.ones(len(order), np.float32)
        return Keypoints(x.astype(np.float32), y.astype(np.float32), self.sigma * ones, 0 * ones, response=ones)


def _coarse_to_fine(row: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.int64]:
    """A rank for each place of a grid: a place between four others comes after them, opposite corners first."""
    rank = np.zeros_like(row)
    for bit in range(int(max(row.max(), column.max())).bit_length()):
        down, right = row >> bit & 1, column >> bit & 1
        rank = rank << 2 | (down ^ right) << 1 | down
    return rank

"""What a sampler gives: which patches make a batch."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError
from keypatch.patches import Classes


@dataclass(frozen=True, eq=False)
class Draw:
    """Rows of patches of one point each: (anchor, positive), (anchor, positive, another point's patch) or candidates.

    `indices` (n, views) are patches of the set, -1 where a class has fewer candidates than others. `classes` (n,) are
    equal where rows show the same point. `turns` (n, views) rotate each patch by so many degrees; None: none is turned.
    With a memory of descriptors, `rows` (n, views) is where it keeps each patch, -1 as above, and `pool` is all there
    is to choose from: the patches drawn are then those to describe anew.
    """

    indices: NDArray[np.int64]
    classes: NDArray[np.int64]
    turns: NDArray[np.float64] | None = None
    rows: NDArray[np.int64] | None = None
    pool: "Draw | None" = None

    def part(self, rows: slice) -> "Draw":
        """The draw of these rows."""

        def some(values: NDArray[Any] | None) -> Any:
            return None if values is None else values[rows]

        pool = None if self.pool is None else self.pool.part(rows)
        return Draw(self.indices[rows], self.classes[rows], some(self.turns), some(self.rows), pool)

    def columns(self, columns: NDArray[np.int64]) -> "Draw":
        """The draw of the patches in these columns, (n, 2)."""
        row = np.arange(len(columns))[:, None]
        return Draw(self.indices[row, columns], self.classes, None if self.turns is None else self.turns[row, columns])

    @property
    def same_source(self) -> float:
        """Share of the rows whose first two patches are made of the same one."""
        return float((self.indices[:, 0] == self.indices[:, 1]).mean())


class Sampler(Protocol):
    """Draws batches. A pure function of (seed, step): a batch needs none of those before it, so resuming is exact."""

    @property
    def pairs(self) -> int: ...

    def draw(self, classes: Classes, seed: int, step: int) -> Draw: ...

    def check(self, classes: Classes) -> None:
        """Raises DataError where the set is too small for one batch."""


def check_points(pairs: int, classes: Classes) -> None:
    """Raises DataError unless a batch can take `pairs` different points."""
    if pairs < 2:
        raise DataError(f"sampler.pairs is {pairs}; a batch needs at least 2 pairs to have a negative.")
    if classes.count < pairs:
        raise DataError(
            f"A batch of {pairs} pairs takes {pairs} different points, but the training set has only "
            f"{classes.count} with two patches or more. Add data or pass --set sampler.pairs={classes.count}."
        )


def distinct(sizes: NDArray[np.int64], views: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Different random numbers below each size, in random order: (n, views), ending in -1 where a size is too small."""
    keys = rng.random((len(sizes), max(views, int(sizes.max()))))
    beyond = np.arange(keys.shape[1]) >= sizes[:, None]
    order = np.where(beyond, 2.0, keys).argsort(axis=1)[:, :views]
    return np.where(np.arange(views) < sizes[:, None], order, -1)

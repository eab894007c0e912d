"""Several pairs of patches of each point, for losses that look at all patches of a point."""

from dataclasses import dataclass

import numpy as np

from keypatch.errors import DataError, RecipeError
from keypatch.patches import Classes
from keypatch.sampling.draws import Draw, distinct


@dataclass(frozen=True)
class SeveralPerPoint:
    """Each batch takes random classes and up to `per_point` different patches of each, as rows of two.

    A class with fewer patches gives the full pairs it has. Classes are taken until there are exactly `pairs` rows, so
    the last one may give fewer.
    """

    pairs: int = 512
    per_point: int = 4

    def __post_init__(self) -> None:
        if self.per_point < 2 or self.per_point % 2:
            raise RecipeError(f"sampler.per_point is {self.per_point}; take an even number: a row holds two patches.")

    def draw(self, classes: Classes, seed: int, step: int) -> Draw:
        """Batch `step`: patches (pairs, 2), rows of a point one after the other."""
        self.check(classes)
        rng = np.random.default_rng([seed, step, 0])
        chosen = rng.choice(classes.count, size=min(classes.count, self.pairs), replace=False)
        rows = distinct(np.diff(classes.starts)[chosen], self.per_point, rng).reshape(len(chosen), -1, 2)
        full = (rows >= 0).all(2)  # (chosen, per_point / 2)
        owner = np.broadcast_to(chosen[:, None], full.shape)[full][: self.pairs]
        return Draw(classes.members[classes.starts[owner, None] + rows[full][: self.pairs]], owner)

    def check(self, classes: Classes) -> None:
        if 2 * self.pairs <= self.per_point:
            raise DataError(
                f"sampler.pairs is {self.pairs}, which one point with {self.per_point} patches can fill, leaving no "
                "negatives. Take more pairs or a smaller sampler.per_point."
            )
        rows = int((np.minimum(np.diff(classes.starts), self.per_point) // 2).sum())
        if rows < self.pairs:
            raise DataError(
                f"A batch of {self.pairs} pairs with at most {self.per_point} patches of a point cannot be filled: the "
                f"training set has only {rows} such pairs. Add data or pass --set sampler.pairs={rows}."
            )

"""Which patches make a batch: random classes, two patches of each."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError
from keypatch.patches import Classes


@dataclass(frozen=True)
class RandomPairs:
    """Each batch takes `pairs` different classes uniformly and two different patches of each, in random order."""

    pairs: int = 1024

    def batch(self, classes: Classes, seed: int, step: int) -> NDArray[np.int64]:
        """Patch indices (pairs, 2) of batch `step`; needs none of the batches before it."""
        self.check(classes)
        rng = np.random.default_rng([seed, step, 0])
        chosen = rng.choice(classes.count, size=self.pairs, replace=False)
        start = classes.starts[chosen]
        size = classes.starts[chosen + 1] - start
        first = rng.integers(0, size)
        second = rng.integers(0, size - 1)
        second += second >= first  # uniform over the others, never the same patch twice
        indices: NDArray[np.int64] = classes.members[np.stack([start + first, start + second], axis=1)]
        return indices

    def check(self, classes: Classes) -> None:
        """Raises DataError where the set is too small for one batch."""
        if self.pairs < 2:
            raise DataError(f"sampler.pairs is {self.pairs}; a batch needs at least 2 pairs to have a negative.")
        if classes.count < self.pairs:
            raise DataError(
                f"A batch of {self.pairs} pairs takes {self.pairs} different points, but the training set has only "
                f"{classes.count} with two patches or more. Add data or pass --set sampler.pairs={classes.count}."
            )

"""Random classes, two patches of each."""

from dataclasses import dataclass

import numpy as np

from keypatch.patches import Classes
from keypatch.sampling.draws import Draw, check_points


@dataclass(frozen=True)
class RandomPairs:
    """Each batch takes `pairs` different classes uniformly and two different patches of each, in random order."""

    pairs: int = 1024

    def draw(self, classes: Classes, seed: int, step: int) -> Draw:
        """Batch `step`: patches (pairs, 2)."""
        return draw_pairs(self.pairs, classes, np.random.default_rng([seed, step, 0]))

    def check(self, classes: Classes) -> None:
        check_points(self.pairs, classes)


def draw_pairs(pairs: int, classes: Classes, rng: np.random.Generator) -> Draw:
    check_points(pairs, classes)
    chosen = rng.choice(classes.count, size=pairs, replace=False)
    start = classes.starts[chosen]
    size = classes.starts[chosen + 1] - start
    first = rng.integers(0, size)
    second = rng.integers(0, size - 1)
    second += second >= first  # uniform over the others, never the same patch twice
    return Draw(classes.members[np.stack([start + first, start + second], axis=1)], chosen)

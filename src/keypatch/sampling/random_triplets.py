"""Random classes, two patches of each, and a patch of another class."""

from dataclasses import dataclass, replace

import numpy as np

from keypatch.patches import Classes
from keypatch.sampling.draws import Draw, check_points
from keypatch.sampling.random_pairs import draw_pairs


@dataclass(frozen=True)
class RandomTriplets:
    """`RandomPairs` with a third patch: of another class, drawn uniformly, and of it any patch, as TFeat takes them.

    For the mining `ThirdPatch`. A third patch may show a point of another row.
    """

    pairs: int = 1024

    def draw(self, classes: Classes, seed: int, step: int) -> Draw:
        """Batch `step`: patches (pairs, 3), anchor, positive and third patch."""
        rng = np.random.default_rng([seed, step, 0])
        drawn = draw_pairs(self.pairs, classes, rng)
        other = rng.integers(0, classes.count - 1, self.pairs)
        other += other >= drawn.classes  # uniform over the other classes
        third = classes.members[rng.integers(classes.starts[other], classes.starts[other + 1])]
        return replace(drawn, indices=np.column_stack([drawn.indices, third]))

    def check(self, classes: Classes) -> None:
        check_points(self.pairs, classes)

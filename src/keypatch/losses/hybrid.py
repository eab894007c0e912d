"""HyNet's triplet term."""

from dataclasses import dataclass

from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import Hybrid


@dataclass(frozen=True)
class HybridTriplet:
    """HyNet eq. 6: hinge on s_H with the hardest negative of all four blocks.

    As in the published code there is no 1/Z, which would change what the margin means. That code sums, the paper
    takes the mean.
    """

    alpha: float = 2.0
    margin: float = 1.2
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        s_h = Hybrid(self.alpha)
        return (self.margin + batch.positive_distances(s_h) - batch.negative_distances(s_h)).relu()

"""SOSNet's first-order term."""

from dataclasses import dataclass

from torch import Tensor

from keypatch.losses.described import Described


@dataclass(frozen=True)
class SquaredTriplet:
    """SOSNet, first-order similarity: ([margin + d+ - d-]+)^2 with the hardest negatives of all four blocks.

    The published script trains with margin 1.2 and sums; the paper has margin 1 and a mean.
    """

    margin: float = 1.0
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        return (self.margin + batch.positive_distances() - batch.negative_distances()).relu().square()

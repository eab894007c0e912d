"""HardNet's contrastive form."""

from dataclasses import dataclass

from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import EUCLIDEAN, Measure


@dataclass(frozen=True)
class Contrastive:
    """HardNet's code, `contrastive`: d+ + [margin - d-]+. That code adds 1e-8 to every distance; this one does not."""

    margin: float = 1.0
    measure: Measure = EUCLIDEAN
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        return batch.positive_distances(self.measure) + (self.margin - batch.negative_distances(self.measure)).relu()

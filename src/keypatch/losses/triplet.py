"""The triplet hinge."""

from dataclasses import dataclass

from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import EUCLIDEAN, Measure


@dataclass(frozen=True)
class Triplet:
    """[margin + d+ - d-]+: HardNet eq. 4 with the hardest negatives of rows and columns.

    TFeat is `Triplet(margin=2, measure=Raw())` with `ThirdPatch()` as mining.
    """

    margin: float = 1.0
    measure: Measure = EUCLIDEAN
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        gap = batch.positive_distances(self.measure) - batch.negative_distances(self.measure)
        return (self.margin + gap).relu()

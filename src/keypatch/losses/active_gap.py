"""SDGMNet's baseline."""

from dataclasses import dataclass

from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import Euclidean, Measure

_EUCLIDEAN = Euclidean(eps=1e-5)  # SDGMNet's code


@dataclass(frozen=True)
class ActiveGap:
    """HN-FRN in SDGMNet's code: the mean of d+ - d- over the triplets within the margin, one value.

    HardNet's hinge without its constant, and divided by the number of open hinges instead of all.
    """

    margin: float = 1.0
    measure: Measure = _EUCLIDEAN
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        gap = batch.positive_distances(self.measure) - batch.negative_distances(self.measure)
        active = ~(self.margin + gap < 0)  # nan counts, so that it shows
        counted = gap.where(active, 0.0) if batch.weights is None else (gap * batch.weights).where(active, 0.0)
        return counted.sum() / active.sum().clamp(min=1)

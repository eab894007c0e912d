"""The contrastive loss with a margin on either side."""

from dataclasses import dataclass

from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import EUCLIDEAN, Measure


@dataclass(frozen=True)
class PairContrastive:
    """GOR eq. 1: [D - eps+]+ of the matching pair plus, if there is an eps-, [eps- - D]+ of the non-matching one.

    With GOR the second part is left out, since `SpreadOut` takes its place. `Contrastive`, HardNet's form, is this one
    with eps+ = 0.
    """

    eps_positive: float = 0.7
    eps_negative: float | None = None
    measure: Measure = EUCLIDEAN
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        pulled = (batch.positive_distances(self.measure) - self.eps_positive).relu()
        if self.eps_negative is None:
            return pulled
        return pulled + (self.eps_negative - batch.negative_distances(self.measure)).relu()

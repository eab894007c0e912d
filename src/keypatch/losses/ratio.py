"""TFeat's ratio loss."""

from dataclasses import dataclass

from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import Measure, Raw

_PLAIN = Raw(eps=0.0)


@dataclass(frozen=True)
class Ratio:
    """PN-Net's and TFeat's ratio loss: (e^d+ / (e^d+ + e^d-))^2 on raw distances.

    This is PN-Net's code; TFeat's formula, known only from memory, is twice that.
    """

    measure: Measure = _PLAIN
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        gap = batch.positive_distances(self.measure) - batch.negative_distances(self.measure)
        return gap.sigmoid().square()

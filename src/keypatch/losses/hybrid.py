"""HyNet's triplet term, and what it was compared with."""

import math
from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import EUCLIDEAN, Hybrid, InnerProduct, Measure

_INNER_PRODUCT = InnerProduct()


@dataclass(frozen=True)
class HybridTriplet:
    """HyNet eq. 6: hinge on s_H with the hardest negative of all four blocks.

    As in the published code there is no 1/Z. `z` "inside" is the paper's equation: the margin is then one of distances
    divided by Z, which is another method; "outside" divides the hinge, a matter of scale, as SDGMNet's code has it.
    That code sums, the paper takes the mean.
    """

    alpha: float = 2.0
    margin: float = 1.2
    z: Literal["none", "inside", "outside"] = "none"
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.z not in ("none", "inside", "outside"):
            raise RecipeError(f'HybridTriplet: z must be "none", "inside" or "outside", not "{self.z}".')

    def __call__(self, batch: Described) -> Tensor:
        s_h = Hybrid(self.alpha)
        gap = batch.positive_distances(s_h) - batch.negative_distances(s_h)
        if self.z == "inside":
            gap = gap / largest_slope(self.alpha)
        hinge = (self.margin + gap).relu()
        return hinge / largest_slope(self.alpha) if self.z == "outside" else hinge


@dataclass(frozen=True)
class TwoMeasureTriplet:
    """HyNet eq. 9, L_A: one measure for positives, another for negatives, [margin + (1 - s+) - d-]+.

    Printed is m + s+ - d-, which would push matching descriptors apart; as in s_H, 1 - s must be meant.
    """

    margin: float = 1.0
    positive: Measure = _INNER_PRODUCT
    negative: Measure = EUCLIDEAN
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        gap = batch.positive_distances(self.positive) - batch.negative_distances(self.negative)
        return (self.margin + gap).relu()


def largest_slope(alpha: float) -> float:
    """HyNet's Z, the largest slope of alpha (1 - s) + d by the angle: max of alpha sin(theta) + cos(theta / 2)."""
    u = 4 * alpha / (1 + math.sqrt(1 + 32 * alpha**2))  # sin(theta / 2) where the slope is largest
    return math.sqrt(1 - u**2) * (1 + 2 * alpha * u)

"""Weights of the pairs of a batch."""

from dataclasses import dataclass
from typing import Literal, Protocol

import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import Angle, Measure
from keypatch.parts import table

_ANGLE = Angle()


class Weighting(Protocol):
    """(n,) of a described batch, detached: what multiplies the values of the terms."""

    def __call__(self, batch: Described) -> Tensor: ...


@dataclass(frozen=True)
class InverseDistance:
    """AdaSample: w_i proportional to 1/d(a_i, p_i), which undoes that far positives are drawn more often.

    "mean" makes them one on average, so that the learning rate keeps its meaning; "none" leaves 1/d. Below `floor` a
    distance counts as the floor, or one near-identical pair would take most of the batch.
    """

    floor: float = 0.1
    normalization: Literal["mean", "none"] = "mean"
    measure: Measure = _ANGLE

    def __post_init__(self) -> None:
        if not self.floor > 0 or self.normalization not in ("mean", "none"):
            raise RecipeError('InverseDistance: floor must be positive and normalization "mean" or "none".')

    @torch.no_grad()
    def __call__(self, batch: Described) -> Tensor:
        inverse = 1 / batch.positive_distances(self.measure).clamp(min=self.floor)
        return inverse / inverse.mean() if self.normalization == "mean" else inverse


WEIGHTINGS: dict[str, type] = table("weighting", {"InverseDistance": InverseDistance})

"""The lifted structure loss."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import similarities


@dataclass(frozen=True)
class Lifted:
    """Song et al. 2016: the mean of max(0, J_ij)^2 / 2 over all matching pairs of the batch. One value per batch.

    "smooth", the authors' code: J_ij = D_ij + log(sum over negatives k of i of e^(margin - D_ik) + the same of j).
    "hard": J_ij = D_ij + margin - the distance of the nearest negative of either. The original takes raw descriptors.
    The smooth value grows with the logarithm of the batch, so it compares only at the same size.
    """

    margin: float = 1.0
    kind: Literal["smooth", "hard"] = "smooth"
    descriptors: Literal["unit", "raw"] = "unit"
    weight: float = 1.0

    def __post_init__(self) -> None:
        if self.kind not in ("smooth", "hard") or self.descriptors not in ("unit", "raw"):
            raise RecipeError('Lifted: kind is "smooth" or "hard", and descriptors "unit" or "raw".')

    def __call__(self, batch: Described) -> Tensor:
        distances = _distances((batch.unit if self.descriptors == "unit" else batch.raw)[: 2 * batch.n])
        labels = batch.labels
        same = labels[:, None] == labels[None, :]
        nearness = (self.margin - distances).masked_fill(same, -torch.inf)
        if self.kind == "smooth":
            row = nearness.logsumexp(1)
            nearest = torch.logaddexp(row[:, None], row[None, :])
        else:
            row = nearness.amax(1)
            nearest = torch.maximum(row[:, None], row[None, :])
        matching = same.clone().fill_diagonal_(False)  # each pair in both orders, which the count cancels
        squares = (nearest + distances).relu().square() * matching
        return squares.sum() / (2 * matching.sum())


def _distances(x: Tensor) -> Tensor:
    """All distances (n, n) of descriptors of any length."""
    lengths = x.square().sum(1)
    squared = lengths[:, None] + lengths[None, :] - 2 * similarities(x, x)
    return squared.clamp(min=1e-12).sqrt()  # identical ones, the diagonal too, are at rest: the root has no slope there

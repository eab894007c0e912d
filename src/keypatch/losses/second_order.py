"""SOSNet's second-order term."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from keypatch.errors import KeypatchError, RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import distance_matrix


@dataclass(frozen=True)
class SecondOrder:
    """SOSNet, second-order similarity: sqrt(sum over neighbours j of (d(a_i, a_j) - d(p_i, p_j))^2).

    Neighbours of i, "paper": its k nearest among the anchors or among the positives. "code": also those between anchors
    and positives in both directions, and j is one of i if i is one of j: about 22 instead of 14 for k = 8, n = 64.
    """

    k: int = 8
    neighbours: Literal["code", "paper"] = "code"
    duplicate_threshold: float = 0.008  # the same patch under another label comes last
    weight: float = 1.0
    weighted: ClassVar[bool] = False  # about neighbourhoods, not about how hard a pair is

    def __post_init__(self) -> None:
        if self.k < 1 or self.neighbours not in ("code", "paper"):
            raise RecipeError('SecondOrder: k must be at least 1 and neighbours "code" or "paper".')

    def __call__(self, batch: Described) -> Tensor:
        if batch.n < self.k + 2:
            raise KeypatchError(
                f"SecondOrder looks at the {self.k} nearest other pairs, and the batch has {batch.n} pairs. "
                f"Take at least {self.k + 2} pairs per batch or a smaller k."
            )
        among_anchors = distance_matrix(batch.anchors, batch.anchors)
        among_positives = distance_matrix(batch.positives, batch.positives)
        neighbours = self._neighbours(batch, among_anchors.detach(), among_positives.detach())
        difference = (among_anchors - among_positives) * neighbours
        return (difference.square().sum(1) + 1e-6).sqrt()  # 1e-6: SOSNet's code

    @torch.no_grad()
    def _neighbours(self, batch: Described, among_anchors: Tensor, among_positives: Tensor) -> Tensor:
        """(n, n), true where j is a neighbour of i."""
        near = self._nearest(among_anchors) | self._nearest(among_positives)
        if self.neighbours == "code":
            across = distance_matrix(batch.anchors, batch.positives)
            near |= self._nearest(across) | self._nearest(across.T)
            near |= near.T.clone()
        return near.fill_diagonal_(False)

    def _nearest(self, distances: Tensor) -> Tensor:
        key = distances + 2.0 * torch.eye(len(distances), device=distances.device, dtype=distances.dtype)
        key = key + 2.0 * (key <= self.duplicate_threshold)
        index = key.topk(self.k, dim=1, largest=False).indices
        return torch.zeros_like(distances, dtype=torch.bool).scatter_(1, index, True)

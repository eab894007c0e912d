"""SOSNet's second-order term."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from keypatch.errors import KeypatchError, RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import distance_matrix
from keypatch.losses.rows import by_rows


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
                f"SecondOrder looks at the {self.k} nearest other pairs, but the batch has only {batch.n} pairs. Take "
                f"at least {self.k + 2} pairs per batch or a smaller k."
            )
        nearest = self._nearest(batch)

        def differences(rows: slice, anchors: Tensor, positives: Tensor) -> Tensor:
            difference = distance_matrix(anchors[rows], anchors) - distance_matrix(positives[rows], positives)
            return ((difference * self._neighbours(nearest, rows)).square().sum(1) + 1e-6).sqrt()  # 1e-6: SOSNet's code

        return by_rows(batch, batch.n, differences, batch.anchors, batch.positives)

    @torch.no_grad()
    def _nearest(self, batch: Described) -> Tensor:
        """(n, k) of each pair of sides: the pairs nearest to pair i."""
        sides = [(batch.anchors, batch.anchors), (batch.positives, batch.positives)]
        if self.neighbours == "code":
            sides += [(batch.anchors, batch.positives), (batch.positives, batch.anchors)]

        def nearest(rows: slice) -> Tensor:
            own = torch.arange(batch.n, device=batch.unit.device)
            found = []
            for x, y in sides:
                distances = distance_matrix(x[rows], y)
                key = distances + 2.0 * (own[rows, None] == own)
                key = key + 2.0 * (key <= self.duplicate_threshold)
                found.append(key.topk(self.k, dim=1, largest=False).indices)
            return torch.cat(found, dim=1).T

        return by_rows(batch, batch.n, nearest).T

    def _neighbours(self, nearest: Tensor, rows: slice) -> Tensor:
        """(rows, n), true where j is a neighbour of i."""
        n, own = len(nearest), rows.stop - rows.start
        near = torch.zeros(own, n, dtype=torch.bool, device=nearest.device).scatter_(1, nearest[rows], True)
        if self.neighbours == "code":  # and where i is one of j; others fall into a column of their own
            inside = (nearest >= rows.start) & (nearest < rows.stop)
            toward = torch.zeros(n, own + 1, dtype=torch.bool, device=nearest.device)
            toward.scatter_(1, (nearest - rows.start).where(inside, own), True)
            near |= toward[:, :own].T
        pair = torch.arange(n, device=nearest.device)
        return near & (pair[rows, None] != pair)

"""The lifted structure loss."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses.described import Described
from keypatch.losses.measures import similarities
from keypatch.losses.rows import by_rows


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
            raise RecipeError('Lifted: kind must be "smooth" or "hard", and descriptors "unit" or "raw".')

    def __call__(self, batch: Described) -> Tensor:
        x = (batch.unit if self.descriptors == "unit" else batch.raw)[: 2 * batch.n]
        smooth, labels = self.kind == "smooth", batch.labels
        patch = torch.arange(2 * batch.n, device=x.device)

        def both(rows: slice) -> Tensor:
            """The two patches of each pair, as rows of x."""
            return torch.cat([patch[: batch.n][rows], patch[batch.n :][rows]])

        def nearness(rows: slice, x: Tensor) -> Tensor:
            own = both(rows)
            near = (self.margin - _distances(x[own], x)).masked_fill(labels[own, None] == labels, -torch.inf)
            return (near.logsumexp(1) if smooth else near.amax(1)).view(2, -1)

        def sums(rows: slice, x: Tensor, nearest: Tensor) -> Tensor:
            own = both(rows)
            either = (torch.logaddexp if smooth else torch.maximum)(nearest[own, None], nearest[None, :])
            matching = (labels[own, None] == labels) & (own[:, None] != patch)  # in both orders: the count cancels it
            squares = (either + _distances(x[own], x)).relu().square() * matching
            return torch.stack([squares.sum(1), matching.sum(1)]).view(2, 2, -1).sum(1)

        nearest = by_rows(batch, 4 * batch.n, nearness, x).flatten()
        found = by_rows(batch, 4 * batch.n, sums, x, nearest)
        return found[0].sum() / (2 * found[1].sum())


def _distances(x: Tensor, y: Tensor) -> Tensor:
    """All distances (n, m) of descriptors of any length."""
    squared = x.square().sum(1)[:, None] + y.square().sum(1)[None, :] - 2 * similarities(x, y)
    return squared.clamp(min=1e-12).sqrt()  # identical ones, a patch and itself too, are at rest: no slope there

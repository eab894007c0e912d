"""The triplet hinge averaged over the batch."""

from dataclasses import dataclass

import torch
from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import distance_matrix
from keypatch.losses.mining import check_found
from keypatch.losses.rows import by_rows


@dataclass(frozen=True)
class AverageTriplet:
    """HardNet's code, `average`: mean over all j != i of [margin + d+_i - d(a_j, p_i)]+, needs no mining.

    With `swap` the negative is the smaller of d(a_j, p_i) and d(a_i, p_j). That code also counts the zeros of the
    diagonal: its value is (n - 1) / n of this one.
    """

    margin: float = 1.0
    swap: bool = True
    duplicate_threshold: float = 0.008
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        def sums(rows: slice, anchors: Tensor, positives: Tensor, positive: Tensor) -> Tensor:
            same = batch.same_point(rows)
            negative = self._usable(distance_matrix(positives[rows], anchors), same)  # (i, j): d(a_j, p_i)
            if self.swap:
                negative = torch.minimum(negative, self._usable(distance_matrix(anchors[rows], positives), same))
            hinges = (self.margin + positive[rows, None] - negative).relu()  # 0 where there is no negative
            return torch.stack([hinges.sum(1), (negative != torch.inf).sum(1)])

        found = by_rows(batch, batch.n, sums, batch.anchors, batch.positives, batch.positive_distances())
        check_found(found[1].detach() > 0)
        return found[0] / found[1]

    def _usable(self, distances: Tensor, same: Tensor) -> Tensor:
        return distances.masked_fill(same | (distances < self.duplicate_threshold), torch.inf)

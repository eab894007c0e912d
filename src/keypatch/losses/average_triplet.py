"""The triplet hinge averaged over the batch."""

from dataclasses import dataclass

import torch
from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import distance_matrix
from keypatch.losses.mining import check_found


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
        distances = distance_matrix(batch.anchors, batch.positives)
        excluded = batch.same_point() | (distances < self.duplicate_threshold)
        negative = distances.masked_fill(excluded, torch.inf).T  # (i, j): d(a_j, p_i)
        if self.swap:
            negative = torch.minimum(negative, negative.T)
        valid = negative != torch.inf
        check_found(valid.any(1))
        hinges = (self.margin + batch.positive_distances()[:, None] - negative).relu()  # 0 where not valid
        return hinges.sum(1) / valid.sum(1)

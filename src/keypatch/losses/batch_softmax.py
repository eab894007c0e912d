"""L2-Net's loss on the descriptors: every other pair of the batch is a negative."""

from dataclasses import dataclass

import torch
from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import distance_matrix


@dataclass(frozen=True)
class BatchSoftmax:
    """L2-Net, E1: -log softmax of -D in the pair's row plus the same in its column, D all distances; needs no mining.

    The form of HardNet's code, without the 1e-8 of its denominators; L2-Net's factor 1/2 is `weight=0.5`.
    """

    swap: bool = True  # false: rows alone, each anchor among the positives
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        return pair_softmax(-distance_matrix(batch.anchors, batch.positives), batch, self.swap)


def pair_softmax(logits: Tensor, batch: Described, swap: bool = True) -> Tensor:
    """-log softmax of the diagonal of (n, n) in its row, and in its column, (n,); pairs of the same point stand out."""
    own = torch.eye(batch.n, dtype=torch.bool, device=logits.device)
    others = logits.masked_fill(batch.same_point() & ~own, -torch.inf)
    rows = others.logsumexp(1) - logits.diagonal()
    return rows + others.logsumexp(0) - logits.diagonal() if swap else rows

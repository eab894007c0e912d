"""L2-Net's loss on the descriptors: every other pair of the batch is a negative."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from keypatch.losses.described import Described
from keypatch.losses.measures import distance_matrix
from keypatch.losses.rows import by_rows


@dataclass(frozen=True)
class BatchSoftmax:
    """L2-Net, E1: -log softmax of -D in the pair's row plus the same in its column, D all distances; needs no mining.

    The form of HardNet's code, without the 1e-8 of its denominators; L2-Net's factor 1/2 is `weight=0.5`.
    """

    swap: bool = True  # false: rows alone, each anchor among the positives
    weight: float = 1.0

    def __call__(self, batch: Described) -> Tensor:
        return pair_softmax(lambda x, y: -distance_matrix(x, y), batch.anchors, batch.positives, batch, self.swap)


def pair_softmax(
    logits: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor, batch: Described, swap: bool = True
) -> Tensor:
    """-log softmax of the diagonal of logits(x, y), (n, n), in its row, and in its column, (n,).

    Pairs of the same point stand out. A column is a row of logits(y, x).
    """

    def of_rows(rows: slice, x: Tensor, y: Tensor) -> Tensor:
        repeated = other_pairs_of_the_point(batch, rows)
        values = x.new_zeros(rows.stop - rows.start)
        for first, second in ((x, y), (y, x)) if swap else ((x, y),):
            found = logits(first[rows], second)
            values = values + found.masked_fill(repeated, -torch.inf).logsumexp(1) - found.diagonal(rows.start)
        return values

    return by_rows(batch, batch.n, of_rows, x, y)


def other_pairs_of_the_point(batch: Described, rows: slice) -> Tensor:
    """(rows, n), true where another pair shows the same point: it is no negative."""
    pair = torch.arange(batch.n, device=batch.unit.device)
    return batch.same_point(rows) & (pair[rows, None] != pair)

"""SDGMNet's mining."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from keypatch.losses.mining import BLOCKS, Negatives, check_blocks, mine_by_rows

if TYPE_CHECKING:
    from keypatch.losses.described import Described

_ALL = tuple(BLOCKS)
_EQUAL = 1 - 1e-5  # SDGMNet's code, before the threshold


@dataclass(frozen=True)
class AntiNoise:
    """The hardest negative of the blocks that is not taken for noise: another pair under `threshold` radians.

    A pair that comes too near in one block is passed over in all, and the next hardest is taken; where all are too
    near, the hardest. The threshold holds from the share `start` of the training on, before it only for copies.
    """

    threshold: float = 0.6
    start: float = 0.125  # SDGMNet's code; its HN-FRN has 0
    blocks: tuple[str, ...] = _ALL  # SDGMNet's code; its text follows HardNet, rows and columns

    def __post_init__(self) -> None:
        check_blocks(self.blocks)

    @torch.no_grad()
    def __call__(self, batch: "Described") -> Negatives:
        begun = batch.moment is None or batch.moment.share >= self.start
        limit = math.cos(self.threshold) if begun else _EQUAL

        def choose(candidates: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            nearest = candidates.amax(0)  # (rows, n)
            distant = nearest.masked_fill(nearest >= limit, -torch.inf)
            some = distant.amax(1, keepdim=True) != -torch.inf
            partner = distant.where(some, nearest).argmax(1)
            return candidates, partner.expand(len(candidates), -1)

        return mine_by_rows(batch, self.blocks, choose)

"""Mining for binary descriptors."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from keypatch.losses.mining import Negatives, check_blocks, mine_by_rows

if TYPE_CHECKING:
    from keypatch.losses.described import Described


@dataclass(frozen=True)
class HardestBits:
    """The negative with the fewest different bits, a bit being the sign of a raw output: the dynamic margin's code.

    Fewer than `duplicate_bits` different ones mean the same patch under another label.
    """

    blocks: tuple[str, ...] = ("rows", "columns")
    duplicate_bits: int = 2

    def __post_init__(self) -> None:
        check_blocks(self.blocks)

    @torch.no_grad()
    def __call__(self, batch: "Described") -> Negatives:
        def hardest(candidates: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            near = candidates > batch.raw.shape[1] - 2 * self.duplicate_bits
            candidates = candidates.masked_fill(near, -torch.inf)
            return candidates, candidates.argmax(2)

        bits = replace(batch, unit=signs(batch.raw))  # similarities are then dimensions - 2 * differences
        return mine_by_rows(bits, self.blocks, hardest)


def signs(x: Tensor) -> Tensor:
    """+1 where positive, else -1."""
    return (x > 0).to(x.dtype) * 2 - 1

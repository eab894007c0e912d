"""Mining: which negative each pair of the batch gets. A miner is a value; called with a batch it returns indices.

A batch holds one matching pair (a_i, p_i) per row. A block is one way to put pair i against pair j.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import torch
from torch import Tensor

from keypatch.errors import KeypatchError, RecipeError
from keypatch.losses.measures import similarities
from keypatch.losses.rows import by_rows

if TYPE_CHECKING:
    from keypatch.losses.described import Described

# Which descriptor of pair i meets which of pair j (0: anchor, 1: positive).
# Equally near negatives are taken in this order, as in HyNet's code.
BLOCKS = {"anchors": (0, 0), "positives": (1, 1), "rows": (0, 1), "columns": (1, 0)}


@dataclass(frozen=True, eq=False)
class Negatives:
    """The two ends of each pair's negative: rows of the stack [anchors; positives; third patches].

    (n,) each, or (k, n): then the nearest of k by the term's own measure counts; equally near ones share the gradient.
    """

    first: Tensor
    second: Tensor


class Mining(Protocol):
    def __call__(self, batch: "Described") -> Negatives: ...


@dataclass(frozen=True)
class Hardest:
    """The most similar non-matching descriptors: HardNet takes rows and columns; SOSNet, HyNet and SDGMNet all blocks.

    Closer than `duplicate_threshold` (Euclidean) means the same patch under another label, never a negative: by "entry"
    in that one comparison, by "classes" in every block as soon as one of the blocks is that close.
    """

    blocks: tuple[str, ...] = ("rows", "columns")
    duplicate_threshold: float = 0.008  # HardNet, SOSNet and HyNet; 0 keeps everything
    duplicates: Literal["entry", "classes"] = "entry"

    def __post_init__(self) -> None:
        check_blocks(self.blocks)
        if self.duplicates not in ("entry", "classes"):
            raise RecipeError(f'Mining: duplicates="{self.duplicates}" is unknown; choose "entry" or "classes".')

    @torch.no_grad()
    def __call__(self, batch: "Described") -> Negatives:
        def hardest(candidates: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            candidates = drop_duplicates(candidates, self.duplicate_threshold, self.duplicates)
            return candidates, candidates.argmax(2)

        return mine_by_rows(batch, self.blocks, hardest)


@dataclass(frozen=True)
class RandomInBatch:
    """A random other pair of the batch: HardNet's `random`. The nearest block with that pair, so two are a swap."""

    blocks: tuple[str, ...] = ("rows", "columns")
    duplicate_threshold: float = 0.008

    def __post_init__(self) -> None:
        check_blocks(self.blocks)

    @torch.no_grad()
    def __call__(self, batch: "Described") -> Negatives:
        device, generator = batch.unit.device, batch.generator
        drawn_on = device if generator is None else generator.device
        draw = torch.rand(batch.n, device=drawn_on, generator=generator).to(device)  # for all pairs, whoever's they are

        def random(candidates: Tensor, rows: slice) -> tuple[Tensor, Tensor]:
            candidates = drop_duplicates(candidates, self.duplicate_threshold, "entry")
            usable = candidates.amax(0) != -torch.inf  # (rows, n)
            rank = (draw[rows] * usable.sum(1)).long()  # of the usable one that is taken
            partner = (usable.cumsum(1) == rank[:, None] + 1).to(torch.uint8).argmax(1)  # the first of them
            return candidates, partner.expand(len(candidates), -1)

        return mine_by_rows(batch, self.blocks, random)


@dataclass(frozen=True)
class ThirdPatch:
    """An explicit third patch for each pair (TFeat, GOR); with `swap` against the nearer of anchor and positive."""

    swap: bool = True

    def __call__(self, batch: "Described") -> Negatives:
        if batch.raw_negatives is None:
            raise KeypatchError(
                "Mining with ThirdPatch needs a third patch for every pair, but the batch has none. Pass "
                "raw_negatives, or choose Hardest or RandomInBatch."
            )
        anchor = torch.arange(batch.n, device=batch.unit.device)
        third = anchor + 2 * batch.n
        if not self.swap:
            return Negatives(anchor, third)
        return Negatives(torch.stack([anchor, anchor + batch.n]), torch.stack([third, third]))


# Of some rows: similarities (blocks, rows, n), some perhaps crossed out, and the partner in each block (blocks, rows).
Choice = Callable[[Tensor, slice], tuple[Tensor, Tensor]]


def mine_by_rows(batch: "Described", blocks: tuple[str, ...], choose: Choice) -> Negatives:
    """The nearest block of the partners that `choose` finds; some rows at a time, so that memory is bounded."""

    def mine(rows: slice) -> Tensor:
        return _nearest_block(*choose(_compare_blocks(batch, blocks, rows), rows), blocks, batch.n, rows.start)

    first, second, known = by_rows(batch, len(blocks) * batch.n, mine)
    check_found(known.bool())
    return Negatives(first, second)


def _compare_blocks(batch: "Described", blocks: tuple[str, ...], rows: slice) -> Tensor:
    """Similarities (blocks, rows, n) of pair i with pair j; -inf for the pair itself and pairs of the same point."""
    sides = (batch.anchors, batch.positives)
    matrices = torch.stack([similarities(sides[x][rows], sides[y]) for x, y in _ends(blocks)])
    return matrices.masked_fill_(batch.same_point(rows), -torch.inf)


def drop_duplicates(candidates: Tensor, threshold: float, rule: Literal["entry", "classes"]) -> Tensor:
    """-inf where a distance is under the threshold, by entry or for that pair of classes in all blocks."""
    if threshold <= 0:
        return candidates
    near = candidates > 1 - threshold**2 / 2
    return candidates.masked_fill(near.any(0) if rule == "classes" else near, -torch.inf)


def _nearest_block(candidates: Tensor, partner: Tensor, blocks: tuple[str, ...], n: int, start: int) -> Tensor:
    """Both ends of the most similar of each pair's candidates, one per block, and whether there is one: (3, rows)."""
    similarity, block = candidates.gather(2, partner[:, :, None])[:, :, 0].max(0)  # the first of equals
    row = torch.arange(len(block), device=block.device)
    firsts = torch.stack([row + start + n * x for x, _ in _ends(blocks)])
    seconds = torch.stack([other + n * y for other, (_, y) in zip(partner, _ends(blocks), strict=True)])
    known = similarity != -torch.inf  # nan passes: the loss will be nan, which says more
    return torch.stack([firsts[block, row], seconds[block, row], known.long()])


def check_blocks(blocks: tuple[str, ...]) -> None:
    unknown = [name for name in blocks if name not in BLOCKS]
    if unknown or not blocks:
        found = f'"{unknown[0]}" is not one of them' if unknown else "none is given"
        raise RecipeError(f"Mining: the blocks to choose from are {', '.join(BLOCKS)}; {found}.")


def _ends(blocks: tuple[str, ...]) -> list[tuple[int, int]]:
    return [ends for name, ends in BLOCKS.items() if name in blocks]


def check_found(found: Tensor) -> None:
    """Raises unless every pair has a negative, (n,). The one look at values: for it a GPU has to finish the mining."""
    if found.device.type == "meta" or bool(found.all()):
        return
    raise KeypatchError(
        f"{int((~found).sum())} of the {len(found)} pairs of the batch have no valid negative: all others show the "
        "same point or have descriptors closer than the duplicate threshold. Take more points per batch; if there are "
        "enough, the network has collapsed (all patches get the same descriptor): lower the learning rate."
    )

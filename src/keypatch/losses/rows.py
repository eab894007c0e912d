"""Work on a batch that is cut by pairs: a part of them at a time in memory, and each process its own pairs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

if TYPE_CHECKING:
    from keypatch.losses.described import Described

AT_ONCE = 2**24  # numbers of a matrix in memory, 64 MB, of which a term keeps a few: all of 4,096 by 4,096


class Rows(Protocol):
    """Which pairs of a batch this process works on, where several share it: all compare with the whole batch."""

    @property
    def own(self) -> range: ...

    def gather(self, own: Tensor) -> Tensor:
        """(k, own) of every process -> (k, n), in the order of the batch."""
        ...

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        """Each added up over the processes."""
        ...


def row_blocks(batch: "Described", width: int) -> list[slice]:
    """This process's pairs in parts, so that `width` numbers for each pair of a part are at most `AT_ONCE`."""
    own = range(batch.n) if batch.rows is None else batch.rows.own
    step = max(1, AT_ONCE // width)
    return [slice(start, min(start + step, own.stop)) for start in range(own.start, own.stop, step)]


def by_rows(batch: "Described", width: int, values: Callable[..., Tensor], *inputs: Tensor) -> Tensor:
    """Values of each pair, (n,) or (k, n), of a function of some pairs (a slice) and of tensors of the whole batch.

    `width` is how many numbers it makes for one pair. Where all do not fit at once, a part is computed again for its
    gradient (torch's checkpoint). `inputs` are all that a gradient goes to: what the processes find for each is summed.
    """
    shared = [_Shared.apply(x, batch.rows) if batch.rows is not None else x for x in inputs]  # type: ignore[no-untyped-call]
    blocks = row_blocks(batch, width)
    if len(blocks) == 1:
        found: Tensor = values(blocks[0], *shared)
    else:
        found = torch.cat([checkpoint(values, rows, *shared, use_reentrant=False) for rows in blocks], dim=-1)
    if batch.rows is None:
        return found
    gathered: Tensor = _Gathered.apply(found.view(-1, found.shape[-1]), batch.rows)  # type: ignore[no-untyped-call]
    return gathered.view(*found.shape[:-1], -1)


class _Shared(torch.autograd.Function):
    """The tensor itself; its gradient is added up over the processes, each of which has used it for its own pairs."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Rows) -> Tensor:
        ctx.rows = rows
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return ctx.rows.sum([gradients[0].contiguous()])[0], None


class _Gathered(torch.autograd.Function):
    """What the processes have found for their pairs, (k, n), on all of them; the gradient is one's own pairs'."""

    @staticmethod
    def forward(ctx: Any, own: Tensor, rows: Rows) -> Tensor:
        ctx.own = rows.own
        return rows.gather(own)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return gradients[0][:, ctx.own.start : ctx.own.stop], None

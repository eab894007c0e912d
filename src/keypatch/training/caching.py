"""Gradient caching: a trunk described in parts without a graph, then in parts again with one; the same gradients."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from keypatch.training.ranks import Ranks
from keypatch.training.whole_batch import Reached, WholeBatchNorm, combined, moments, statistics_gradient

Run = Callable[[slice], tuple[Tensor, ...]]  # some rows through the trunk: what it gives of them


@dataclass
class InParts:
    """Rows that are normalized together, described in parts: only the graph of one part is in memory at a time.

    Where the trunk looks at one patch at a time (FRN), that is one pass more. Batch normalization couples the parts:
    the statistics of each such layer are found in a pass of their own, up to that layer, and in the second half each
    is a leaf that collects its gradient over all parts and ranks before it is passed on to the layers below. With k
    such layers that is k + 1 passes of growing depth each way. Dropout draws by rows, so that both halves see one mask.
    """

    run: Run
    parts: Sequence[slice]
    norms: Sequence[WholeBatchNorm]  # of the trunk, in any order
    ranks: Ranks
    found: list[tuple[WholeBatchNorm, Tensor]] = field(default_factory=list)  # with count, mean and squares, in order

    @torch.no_grad()
    def describe(self) -> list[tuple[Tensor, ...]]:
        """What the trunk gives of each part."""
        self._wait()
        try:
            while True:
                outputs, norm, parts = [], None, []
                for part in self.parts:
                    try:
                        outputs.append(self.run(part))
                    except Reached as reached:
                        norm = reached.norm
                        parts.append(moments(reached.x))
                if norm is None:
                    return outputs
                whole = combined(self.ranks.stack(combined(torch.stack(parts))))
                count, mean, squares = whole
                norm.remember(mean, squares / count, count)
                norm.given, norm.waiting = (mean, squares / count), False
                self.found.append((norm, whole))
        finally:
            self._release()

    def backward(self, gradients: Sequence[tuple[Tensor, ...]]) -> None:
        """Leaves in the parameters what the gradients of each part's output give."""
        for norm, (count, mean, squares) in self.found:
            norm.given = mean.clone().requires_grad_(), (squares / count).requires_grad_()
        try:
            for part, behind in zip(self.parts, gradients, strict=True):
                outputs = self.run(part)
                torch.autograd.backward(outputs, [g.to(y.dtype) for g, y in zip(behind, outputs, strict=True)])
            for norm, (count, mean, _) in reversed(self.found):
                assert norm.given is not None
                to_mean, to_variance = self.ranks.sum([_gradient(leaf) for leaf in norm.given])
                norm.given, norm.waiting = None, True
                for part in self.parts:
                    x = self._input(part)
                    if x.requires_grad:
                        torch.autograd.backward(x, statistics_gradient(x.detach(), mean, count, to_mean, to_variance))
        finally:
            self._release()

    def _input(self, part: slice) -> Tensor:
        """The rows as they enter the normalization that waits."""
        try:
            self.run(part)
        except Reached as reached:
            return reached.x
        raise AssertionError("the trunk took a different path from before")

    def _wait(self) -> None:
        for norm in self.norms:
            norm.waiting = True

    def _release(self) -> None:
        for norm in self.norms:
            norm.given, norm.waiting = None, False


def _gradient(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad

"""One training step: descriptors of a batch, the loss, the gradients."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from keypatch.losses import Described, State, Total, total_loss
from keypatch.networks import PatchNetwork
from keypatch.training.machine import Trunk
from keypatch.training.recipe import Recipe

# Patches per chunk on a CPU: activations stay in the cache, and compiling needs one shape. Compiled HyNet, AVX-512,
# 512 pairs: 246 (32) and 248 (64) pairs/s in float32, 441 and 415 in bfloat16.
CHUNK = 32


@dataclass(frozen=True)
class Outcome:
    """What a step saw: the loss, its terms (weighted, reduced), and the mean distances of positives and negatives."""

    loss: float
    terms: Mapping[str, float]
    positive: float
    negative: float
    states: Mapping[str, State]  # of stateful terms, for the next step


@dataclass(frozen=True)
class Step:
    """Forward and backward of one batch; gradients are left in the network's parameters.

    Where normalization is per patch the trunk runs in chunks, which is exact: the last normalization, mining and the
    loss see the whole batch in float32 either way.
    """

    network: PatchNetwork
    recipe: Recipe
    trunk: Trunk
    precision: torch.dtype
    chunk: int | None  # None = the whole batch at once

    def __call__(self, x: Tensor, states: Mapping[str, State]) -> Outcome:
        pairs = len(x) // 2
        apart = self.recipe.branches == "apart"
        parts = torch.split(x, self.chunk or (pairs if apart else len(x)))
        outputs = [self._trunk(part) for part in parts]
        # Cut here, the graph behind each chunk is freed as soon as its gradient has passed.
        z = torch.cat([output.detach() for output in outputs])
        z = (z.float() if z.dtype == torch.bfloat16 else z).requires_grad_()
        heads = [self.network.head(half) for half in torch.split(z, pairs if apart else len(z))]
        raw = torch.cat(heads)
        batch = Described.of_pairs(raw[:pairs], raw[pairs:], self.recipe.mining)
        total = total_loss(self.recipe.loss, batch, self.recipe.reduction, states)
        outcome = _outcome(batch, total)
        total.value.backward()  # type: ignore[no-untyped-call]
        assert z.grad is not None
        gradients = torch.split(z.grad, [len(output) for output in outputs])
        while outputs:
            output = outputs.pop()
            output.backward(gradients[len(outputs)].to(output.dtype))  # type: ignore[no-untyped-call]
        return outcome

    def _trunk(self, x: Tensor) -> Tensor:
        if self.precision == torch.float32:
            return self.trunk(x)
        with torch.autocast(x.device.type, self.precision):
            return self.trunk(x)


def _outcome(batch: Described, total: Total) -> Outcome:
    with torch.no_grad():
        positive = batch.positive_distances().mean()
        negative = batch.negative_distances().mean() if batch.negatives else positive.new_tensor(float("nan"))
        # one transfer for all figures: each would wait for the device
        figures = torch.stack([total.value.detach(), positive, negative, *total.parts.values()]).tolist()
    return Outcome(figures[0], dict(zip(total.parts, figures[3:], strict=True)), figures[1], figures[2], total.states)

"""One training step: pairs chosen among candidates, descriptors of the batch, the loss, the gradients."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses import Described, Moment, State, Total, total_loss
from keypatch.networks import PatchNetwork, unit_length
from keypatch.patches import Classes
from keypatch.sampling import Draw, RandomTriplets
from keypatch.training.batches import Batch, Batches
from keypatch.training.machine import Trunk
from keypatch.training.recipe import Recipe
from keypatch.training.teaching import Teacher

# Patches per chunk on a CPU: activations stay in the cache, and compiling needs one shape. Compiled HyNet, AVX-512,
# 512 pairs: 246 (32) and 248 (64) pairs/s in float32, 441 and 415 in bfloat16.
CHUNK = 32
_CANDIDATES = 256  # patches per chunk on a CPU where nothing is differentiated


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

    def __call__(
        self, batch: Batch, states: Mapping[str, State], moment: Moment | None = None
    ) -> tuple[Outcome, Described]:
        """What was seen, and the batch as it was described, detached."""
        x, pairs = batch.x, batch.pairs
        apart = self.recipe.branches == "apart"
        parts = torch.split(x, self.chunk or (pairs if apart else len(x)))
        outputs = [self._layers(part) for part in parts]
        # Cut here, the graph behind each chunk is freed as soon as its gradient has passed.
        z, *maps = [_cut(tensors) for tensors in zip(*outputs, strict=True)]
        heads = [self.network.head(view) for view in torch.split(z, pairs if apart else len(z))]
        described = self._described(torch.cat(heads), batch, maps, moment)
        total = total_loss(self.recipe.loss, described, self.recipe.reduction, states)
        outcome = _outcome(described, total)
        total.value.backward()  # type: ignore[no-untyped-call]
        gradients = [torch.split(_gradient(leaf), [len(output[0]) for output in outputs]) for leaf in (z, *maps)]
        while outputs:
            output = outputs.pop()
            behind = [gradient[len(outputs)] for gradient in gradients]
            torch.autograd.backward(output, [g.to(tensor.dtype) for g, tensor in zip(behind, output, strict=True)])
        return outcome, replace(described, raw=described.raw.detach(), unit=described.unit.detach(), maps={})

    def _described(self, raw: Tensor, batch: Batch, maps: list[Tensor], moment: Moment | None) -> Described:
        pairs = batch.pairs
        described = Described.of_pairs(
            raw[:pairs],
            raw[pairs : 2 * pairs],
            None,
            point_id=batch.point_id,
            raw_negatives=raw[2 * pairs :] if len(raw) > 2 * pairs else None,
            moment=moment,
            maps={name: layer[: 2 * pairs] for name, layer in zip(layers_of(self.recipe), maps, strict=True)},
            teacher=batch.teacher,
        )
        if self.recipe.mining is not None:
            described = replace(described, negatives=self.recipe.mining(described))
        if self.recipe.weighting is not None:
            described = replace(described, weights=self.recipe.weighting(described))
        return described

    @torch.no_grad()
    def candidates(self, x: Tensor) -> Tensor:
        """Unit descriptors of patches that may not be trained on; the network's statistics do not see them."""
        was_training = self.network.training
        self.network.eval()
        try:
            parts = torch.split(x, self.chunk or (_CANDIDATES if x.device.type == "cpu" else len(x)))
            z = torch.cat([self._trunk(part).float() for part in parts])
            return unit_length(self.network.head(z))
        finally:
            self.network.train(was_training)

    def _layers(self, x: Tensor) -> tuple[Tensor, ...]:
        """The trunk's output, then the layers that a term looks at."""
        wanted = layers_of(self.recipe)
        if not wanted:
            return (self._trunk(x),)
        maps: dict[str, Tensor] = {}
        with self._autocast(x):
            for name, layer in self.network.layers.named_children():
                x = layer(x)
                if name in wanted:
                    maps[name] = x.flatten(1).clone()  # the activation behind it works in place
        return (x.flatten(1), *(maps[name] for name in wanted))

    def _trunk(self, x: Tensor) -> Tensor:
        with self._autocast(x):
            return self.trunk(x)

    def _autocast(self, x: Tensor) -> AbstractContextManager[None, None]:
        if self.precision == torch.float32:  # not every device knows autocast, even disabled
            return nullcontext()
        return torch.autocast(x.device.type, self.precision)


def layers_of(recipe: Recipe) -> tuple[str, ...]:
    """The layers of the network that terms of the loss look at."""
    return tuple(dict.fromkeys(name for term in recipe.loss for name in getattr(term, "layers", ())))


def check_loss(network: PatchNetwork, recipe: Recipe, teacher: Teacher | None = None) -> None:
    """Raises what the first step would raise, before anything is written.

    Raises:
        RecipeError: a term looks at a layer that the network does not have.
        KeypatchError: a term needs negatives, third patches or a teacher that it is not given.
    """
    known = [name for name, _ in network.layers.named_children()]
    missing = [name for name in layers_of(recipe) if name not in known]
    if missing:
        raise RecipeError(
            f'A loss term needs the layer "{missing[0]}", which {type(recipe.network).__name__} does not have. '
            f"Its layers: {', '.join(known)}."
        )
    pairs, views = recipe.sampler.pairs, 3 if isinstance(recipe.sampler, RandomTriplets) else 2
    x = torch.randn(views * pairs, network.dim, generator=torch.Generator().manual_seed(0))
    x[pairs : 2 * pairs] = x[:pairs] + 0.1 * x[pairs : 2 * pairs]  # what matches is near
    maps = [x[: 2 * pairs] for _ in layers_of(recipe)]
    step = Step(network, recipe, network.trunk, torch.float32, None)
    with torch.no_grad():
        batch = replace(
            Batch.of_pairs(x[: 2 * pairs]), teacher=None if teacher is None else x.new_zeros(len(x), teacher.dim)
        )
        total_loss(recipe.loss, step._described(x, batch, maps, None), recipe.reduction, {})


def _cut(tensors: tuple[Tensor, ...]) -> Tensor:
    whole = torch.cat([tensor.detach() for tensor in tensors])
    return (whole.float() if whole.dtype == torch.bfloat16 else whole).requires_grad_()


def _gradient(leaf: Tensor) -> Tensor:
    return torch.zeros_like(leaf) if leaf.grad is None else leaf.grad


def _outcome(batch: Described, total: Total) -> Outcome:
    with torch.no_grad():
        positive = batch.positive_distances().mean()
        negative = batch.negative_distances().mean() if batch.negatives else positive.new_tensor(float("nan"))
        # one transfer for all figures: each would wait for the device
        figures = torch.stack([total.value.detach(), positive, negative, *total.parts.values()]).tolist()
    terms = dict(zip(total.parts, figures[3:], strict=True))
    return Outcome(figures[0], terms, figures[1], figures[2], total.states)


@runtime_checkable
class ChoosingSampler(Protocol):
    """A sampler whose draw holds candidates. Its state is explicit, and checkpoints save it."""

    @property
    def chooses(self) -> bool:
        """Whether there is a choice to make; without one the draw is the pairs."""
        ...

    def start(self, classes: Classes, dim: int) -> State: ...

    def choose(
        self, draw: Draw, descriptors: Tensor, state: State, moment: Moment | None, rng: np.random.Generator
    ) -> tuple[Draw, Tensor | None, State]:
        """The pairs; which columns of the draw they are, None where they are not among the described ones."""
        ...

    def observe(self, batch: Described, state: State, moment: Moment | None) -> State: ...


def chooser_of(recipe: Recipe) -> ChoosingSampler | None:
    """The recipe's sampler where it has a choice to make."""
    sampler = recipe.sampler
    return sampler if isinstance(sampler, ChoosingSampler) and sampler.chooses else None


def choose_pairs(
    batch: Batch, chooser: ChoosingSampler, step: Step, batches: Batches, state: State, moment: Moment
) -> tuple[Batch, State]:
    """The pairs to train on, and the sampler's next state."""
    number = int(moment.step)
    descriptors = step.candidates(batch.x)
    by_row = descriptors.view(-1, batch.pairs, descriptors.shape[1]).transpose(0, 1)  # (pairs, views, dim)
    rng = np.random.default_rng([batches.recipe.seed, number, 2])
    draw, columns, state = chooser.choose(batch.draw, by_row, state, moment, rng)
    return batches.cut(draw, number) if columns is None else batch.columns(columns, draw), state

"""One training step: pairs chosen among candidates, descriptors of the batch, the loss, the gradients."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from keypatch.errors import RecipeError
from keypatch.losses import Described, Moment, State, Total, total_loss
from keypatch.networks import PatchNetwork, unit_length
from keypatch.patches import Classes
from keypatch.sampling import Draw, RandomTriplets
from keypatch.sampling.generating import uniform
from keypatch.training.batches import Batch, Batches
from keypatch.training.caching import InParts
from keypatch.training.machine import Trunk
from keypatch.training.ranks import ALONE, Ranks
from keypatch.training.recipe import Recipe
from keypatch.training.teaching import Teacher
from keypatch.training.whole_batch import RowDropout, WholeBatchNorm

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
class _OwnRows:
    """This rank's rows of a batch, for what is shared out by rows."""

    ranks: Ranks
    pairs: int

    @property
    def own(self) -> range:
        return self.ranks.share(self.pairs)

    def gather(self, own: Tensor) -> Tensor:
        return self.ranks.gather(own, self.pairs)

    def sum(self, tensors: Sequence[Tensor]) -> list[Tensor]:
        return self.ranks.sum(tensors)


@dataclass(frozen=True)
class Step:
    """Forward and backward of one batch; gradients are left in the network's parameters.

    Where normalization is per patch the trunk runs in chunks, which is exact: the last normalization, mining and the
    loss see the whole batch in float32 either way.

    Each rank runs the trunk on its rows; what comes out is gathered, and every rank has the whole batch from there to
    the loss. The gradient of its rows goes back through its trunk, and the parameters' gradients are added up. Batch
    normalization inside the trunk exchanges its statistics (`WholeBatchNorm`).
    """

    network: PatchNetwork
    recipe: Recipe
    trunk: Trunk
    precision: torch.dtype
    chunk: int | None  # None = the whole batch at once
    ranks: Ranks = ALONE
    cached: int | None = None  # patches whose graph is in memory at a time; None: all

    def __call__(
        self, batch: Batch, states: Mapping[str, State], moment: Moment | None = None
    ) -> tuple[Outcome, Described]:
        """What was seen, and the batch as it was described, detached."""
        apart = self.recipe.branches == "apart"
        keys = _row_keys(self.recipe.seed, moment, batch)
        trunk = self._in_parts(batch, keys) if self.cached else _Graphs(self, batch, keys)
        # Cut here, the graph behind each chunk is freed as soon as its gradient has passed.
        z, *maps = [self._whole(_wide(tensor), batch).requires_grad_() for tensor in trunk.describe()]
        views = torch.split(z, batch.pairs if apart else len(z))
        heads = [self._head(*part) for part in zip(views, torch.split(keys, len(views[0])), strict=True)]
        described = self._described(torch.cat(heads), batch, maps, moment)
        total = total_loss(self.recipe.loss, described, self.recipe.reduction, states)
        outcome = _outcome(described, total)
        total.value.backward()  # type: ignore[no-untyped-call]
        trunk.backward([_own(_gradient(leaf), batch) for leaf in (z, *maps)])
        self._add_up_gradients()
        bare = replace(described, raw=described.raw.detach(), unit=described.unit.detach(), maps={}, rows=None)
        return outcome, bare

    def _whole(self, own: Tensor, batch: Batch) -> Tensor:
        """The rows of all ranks: (views * pairs, d), no longer of any graph."""
        return self.ranks.gather(own.view(-1, len(batch.own), own.shape[1]), batch.pairs).flatten(0, 1)

    def _head(self, z: Tensor, keys: Tensor) -> Tensor:
        self._drop_by(keys)
        return self.network.head(z)

    def _add_up_gradients(self) -> None:
        """Over the ranks; of the head, which every rank has run on the whole batch, the first rank's."""
        if self.ranks.size == 1:
            return
        head = {id(parameter) for parameter in self.network.last.parameters()}
        known = [parameter for parameter in self.network.parameters() if parameter.grad is not None]
        gradients = []
        for parameter in known:
            assert parameter.grad is not None
            once = id(parameter) in head and not self.ranks.first
            gradients.append(torch.zeros_like(parameter.grad) if once else parameter.grad)
        for parameter, gradient in zip(known, self.ranks.sum(gradients), strict=True):
            parameter.grad = gradient

    def run(self, x: Tensor, keys: Tensor) -> tuple[Tensor, ...]:
        """Some patches through the trunk: its output, then the layers that a term looks at."""
        self._drop_by(keys)
        return self._layers(x)

    def _drop_by(self, keys: Tensor) -> None:
        for layer in self.network.modules():
            if isinstance(layer, RowDropout):
                layer.keys = keys

    def _in_parts(self, batch: Batch, keys: Tensor) -> "_Cached":
        """The trunk of every branch described in parts."""
        assert self.cached is not None
        x, mine = batch.x, _own(keys, batch)
        norms = [layer for layer in self.network.layers.modules() if isinstance(layer, WholeBatchNorm)]
        step = self if not norms else replace(self, trunk=self.network.trunk)  # compiled, it would not stop at a norm
        branch = len(batch.own) if self.recipe.branches == "apart" else len(x)
        branches = []
        for start in range(0, len(x), branch):
            ends = [*range(start, start + branch, self.cached), start + branch]
            parts = [slice(a, b) for a, b in pairwise(ends)]
            branches.append(InParts(lambda part: step.run(x[part], mine[part]), parts, norms, self.ranks))
        return _Cached(branches)

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
            generator=torch.Generator().manual_seed(step_seed(self.recipe.seed, moment)),
            rows=_OwnRows(self.ranks, pairs) if self.ranks.size > 1 else None,
            teacher=None if batch.teacher is None else self._whole(batch.teacher, batch),
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
            z = torch.cat([_wide(self._trunk(part)) for part in parts])
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


class _Graphs:
    """The trunk on this rank's rows, in chunks or branch by branch, with the graph of each kept until its gradient."""

    def __init__(self, step: Step, batch: Batch, keys: Tensor) -> None:
        branch = len(batch.own) if step.recipe.branches == "apart" else len(batch.x)
        rows = torch.split(batch.x, step.chunk or branch), torch.split(_own(keys, batch), step.chunk or branch)
        self.outputs = [step.run(*part) for part in zip(*rows, strict=True)]

    def describe(self) -> list[Tensor]:
        return _joined(self.outputs)

    def backward(self, gradients: list[Tensor]) -> None:
        split = [torch.split(gradient, [len(output[0]) for output in self.outputs]) for gradient in gradients]
        while self.outputs:
            output = self.outputs.pop()
            behind = [gradient[len(self.outputs)] for gradient in split]
            torch.autograd.backward(output, [g.to(tensor.dtype) for g, tensor in zip(behind, output, strict=True)])


@dataclass(frozen=True)
class _Cached:
    """The same in parts, described twice."""

    branches: list[InParts]

    def describe(self) -> list[Tensor]:
        return _joined([output for branch in self.branches for output in branch.describe()])

    def backward(self, gradients: list[Tensor]) -> None:
        for branch in self.branches:
            branch.backward([tuple(gradient[part] for gradient in gradients) for part in branch.parts])


def _wide(x: Tensor) -> Tensor:
    return x.float() if x.dtype == torch.bfloat16 else x


def _joined(outputs: list[tuple[Tensor, ...]]) -> list[Tensor]:
    return [torch.cat([tensor.detach() for tensor in tensors]) for tensors in zip(*outputs, strict=True)]


def _own(whole: Tensor, batch: Batch) -> Tensor:
    """This rank's part of what there is for every patch of the batch, (views * pairs, ...)."""
    by_view = whole.view(-1, batch.pairs, *whole.shape[1:])
    return by_view[:, batch.own.start : batch.own.stop].flatten(0, 1)


def _row_keys(seed: int, moment: Moment | None, batch: Batch) -> Tensor:
    """A number below 2^32 for every patch of the batch, (views * pairs,): what dropout draws by."""
    patches = np.arange(len(batch.x) // len(batch.own) * batch.pairs)
    drawn = uniform(seed, np.array([0 if moment is None else int(moment.step) + 1]), patches)
    return torch.from_numpy((drawn * 2**32).astype(np.int64)).to(batch.x.device)


def step_seed(seed: int, moment: Moment | None) -> int:
    """What random choices of a step start from, whatever the rank."""
    return seed * 1_000_003 + (0 if moment is None else int(moment.step) + 1)


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
    descriptors = step.candidates(batch.x).view(-1, len(batch.own), batches.recipe.network.dim)
    by_row = step.ranks.gather(descriptors, batch.pairs).transpose(0, 1)  # (pairs, views, dim)
    rng = np.random.default_rng([batches.recipe.seed, number, 2])
    draw, columns, state = chooser.choose(batch.draw, by_row, state, moment, rng)
    return batches.cut(draw, number, columns, 0 if columns is None else batch.draw.indices.shape[1]), state

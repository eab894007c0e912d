"""Under torchrun: recipes trained by all ranks together and, on each rank, by one process alone; how far they differ.

    torchrun --nproc-per-node 2 tests/training/compare_ranks.py OUT.json CASE...

A case is a recipe's name and what is asked of it: "hardnet", "hardnet:pairs=5", "hardnet:cached", "hardnet:float32",
"hardnet:taught" (with a teacher), "hardnet:head" (parameters behind the trunk), "hardnet:local" (negatives mined among
the rows of a rank alone, which must differ). The first rank writes, for each case, the largest relative difference over
the steps of losses, gradients (norm of the difference over the norm), states of losses and samplers, and of the network
at the end.
"""

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from keypatch.losses import Described, Distillation, Negatives, State
from keypatch.networks import L2Net, PatchNetwork
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.recipes import RECIPES
from keypatch.sampling import AdaptivePairs
from keypatch.training import Recipe
from keypatch.training.batches import Batch, Batches
from keypatch.training.conditions import Conditions
from keypatch.training.loop import _Trainer
from keypatch.training.ranks import ALONE, Ranks, join_ranks

PAIRS, STEPS = 11, 3  # 6 and 5 pairs on two ranks; SecondOrder takes 10 or more


@dataclass(frozen=True)
class LocalHardest:
    """What must not happen: each rank mines among its own rows."""

    ranks: Ranks

    def __call__(self, batch: Described) -> Negatives:
        ends = []
        for rows in self.ranks._shares(batch.n):
            raw = batch.raw.detach()
            part = Described.of_pairs(raw[rows.start : rows.stop], raw[batch.n + rows.start : batch.n + rows.stop])
            assert part.negatives is not None
            both = torch.stack([part.negatives.first, part.negatives.second])
            ends.append(both % len(rows) + rows.start + batch.n * (both >= len(rows)))
        return Negatives(*torch.cat(ends, dim=1))


@dataclass(frozen=True)
class LearnedHead(L2Net):
    """A network with parameters and dropout behind the trunk, where every rank sees all rows."""

    def build(self) -> PatchNetwork:
        network = super().build()
        network.last = nn.Sequential(nn.BatchNorm1d(self.dim), nn.Dropout(0.2))
        return network


@dataclass(frozen=True)
class DoubleBatches(Batches):
    def _cut(self, *asked: Any) -> tuple[Batch, torch.Tensor]:
        batch, patches = super()._cut(*asked)
        return replace(batch, x=batch.x.double()), patches


@dataclass(frozen=True)
class Projection:
    """A teacher: patches seen in directions drawn once."""

    dim: int
    patch_sigmas: float
    name: str = "projection"

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        directions = np.random.default_rng(0).normal(size=(patches[0].size, self.dim))
        return np.asarray((patches.reshape(len(patches), -1) / 255.0) @ directions, np.float32)


def small_set() -> PatchSet:
    """48 points with 4 similar 64x64 patches each."""
    rng = np.random.default_rng(0)
    points = rng.integers(0, 256, (48, 1, 8, 8)).repeat(8, 2).repeat(8, 3)
    views = np.clip(points + rng.normal(0, 12, (48, 4, 64, 64)), 0, 255).astype(np.uint8)
    return PatchSet("small", views.reshape(-1, 64, 64), np.repeat(np.arange(48), 4))


def narrow(recipe: Recipe, pairs: int) -> Recipe:
    sampler: Any = replace(recipe.sampler, pairs=pairs)  # type: ignore[type-var]
    if isinstance(sampler, AdaptivePairs):
        sampler = replace(sampler, warm=0.0, generate=6)  # choosing from the second step on
    return replace(recipe, network=replace(recipe.network, width=4), sampler=sampler, pairs=STEPS * pairs)  # type: ignore[call-arg]


def trainer_of(
    recipe: Recipe, ranks: Ranks, cached: int | None, double: bool, teacher: Projection | None = None
) -> _Trainer:
    conditions = Conditions(device="cpu", precision="float32", compile="off", cache_gradients=cached)
    source, out = small_set(), Path("nowhere")
    log: Any = lambda record: None  # noqa: E731
    trainer = _Trainer(
        recipe, source, None, Progress(), conditions, (), log, None, (), ranks=ranks, out=out, teacher=teacher, form=""
    )
    if double:
        trainer.network.double()
        trainer.average = None  # of float32 weights
        trainer.batches = DoubleBatches(recipe, source, source.classes(), trainer.device, ranks, teacher)
    trainer.network.train()
    return trainer


def compare(case: str, ranks: Ranks) -> dict[str, float]:
    name, _, asked = case.partition(":")
    pairs = int(asked.removeprefix("pairs=")) if asked.startswith("pairs=") else PAIRS
    recipe = narrow(RECIPES[name], pairs)
    if asked == "head":
        recipe = replace(recipe, network=LearnedHead(16, 4))
    teacher = None
    if asked == "taught":
        recipe = replace(recipe, loss=(*recipe.loss, Distillation()))
        teacher = Projection(recipe.network.dim, recipe.network.preprocessing.patch_sigmas)
    alone = trainer_of(recipe, ALONE, None, asked != "float32", teacher)
    shared = replace(recipe, mining=LocalHardest(ranks)) if asked == "local" else recipe
    together = trainer_of(shared, ranks, 4 if asked == "cached" else None, asked != "float32", teacher)
    largest = {"loss": 0.0, "gradient": 0.0, "state": 0.0}
    # one step in float32: learning rates of 10 blow its rounding up from step to step
    for step in range(1 if asked == "float32" else STEPS):
        ours, wanted = (each._advance(step, each.batches.make(step)) for each in (together, alone))
        gradients = [torch.cat([p.grad.flatten() for p in each.network.parameters()]) for each in (together, alone)]  # type: ignore[union-attr]
        found = {
            "loss": abs(ours.loss - wanted.loss) / abs(wanted.loss),
            "gradient": apart(*gradients),
            "state": max(
                apart_states(ours.states, wanted.states),
                apart_states(*({"": each.sampler_state} for each in (together, alone))),
            ),
        }
        largest = {what: max(value, found[what]) for what, value in largest.items()}
    states = (each.network.state_dict() for each in (together, alone))
    return {**largest, "network": apart_states(*({"": state} for state in states))}


def apart(x: Tensor, y: Tensor) -> float:
    x, y = x.double(), y.double()
    return float((x - y).norm() / y.norm().clamp(min=1e-30)) if y.any() or x.any() else 0.0


def apart_states(first: Mapping[str, State], second: Mapping[str, State]) -> float:
    assert first.keys() == second.keys()
    assert all(state.keys() == second[name].keys() for name, state in first.items())
    return max(
        (apart(tensor, second[owner][name]) for owner, state in first.items() for name, tensor in state.items()),
        default=0.0,
    )


def main() -> None:
    torch.set_num_threads(1)
    out, *cases = sys.argv[1:]
    with join_ranks() as ranks:
        found = {case: compare(case, ranks) for case in cases}
        everywhere = ranks.gather_values(found)
        if ranks.first:
            largest = {
                case: {what: max(each[case][what] for each in everywhere) for what in found[case]} for case in cases
            }
            Path(out).write_text(json.dumps({"ranks": ranks.size, "cases": largest}, indent=1))


if __name__ == "__main__":
    main()
    sys.stderr.flush()
    os._exit(0)  # as the command does: gloo's threads abort now and then while the interpreter ends

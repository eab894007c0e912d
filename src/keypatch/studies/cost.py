"""What a study will cost, before it is started: runs, pairs and core-hours, at rates that rows or a few steps show."""

import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from keypatch.benchmarks.evaluation import scoring_precision
from keypatch.commands.train import train
from keypatch.describers.network import NetworkDescriber
from keypatch.networks import choose_device
from keypatch.patches import PatchSet
from keypatch.patches.patch_set import JoinedSets
from keypatch.progress import Progress
from keypatch.studies.rows import Trial
from keypatch.training import Recipe
from keypatch.training.checkpoints import load_checkpoint, milestone_path
from keypatch.training.conditions import Conditions

STEPS = 8  # of a training that is timed; its first half, with compilation, does not count
PATCHES = 512  # described to time it


@dataclass(frozen=True)
class ArmCost:
    """What is still to be done for an arm; hours of one core, or of one GPU."""

    label: str
    runs: int
    pairs: int  # of all runs
    rate: float  # pairs per second of training
    training_hours: float
    scoring_hours: float

    @property
    def hours(self) -> float:
        return self.training_hours + self.scoring_hours


@dataclass(frozen=True)
class Cost:
    """What is still to be done for all arms."""

    arms: tuple[ArmCost, ...]

    @property
    def runs(self) -> int:
        return sum(arm.runs for arm in self.arms)

    @property
    def pairs(self) -> int:
        return sum(arm.pairs for arm in self.arms)

    @property
    def hours(self) -> float:
        return sum(arm.hours for arm in self.arms)

    def sentence(self) -> str:
        """ "6 runs, 900,000 pairs, about 1.3 core-hours (1.1 of training, 0.2 of scoring)." """
        training = sum(arm.training_hours for arm in self.arms)
        hours = f"{self.hours:.1f} core-hours ({training:.1f} of training, {self.hours - training:.1f} of scoring)"
        return f"{self.runs:,} run{'s' * (self.runs != 1)}, {self.pairs:,} pairs, about {hours}."


def estimate(
    missing: Sequence[tuple[str, Recipe]],
    scored: int,
    rows: Sequence[Trial],
    source: PatchSet | JoinedSets,
    conditions: Conditions,
    progress: Progress,
) -> Cost:
    """Of rows that are missing (label and recipe), each of which describes `scored` patches of test sets.

    Finished `rows` say how fast a training is; what they do not is timed, each pace once.
    """
    rates = {pace_of(recipe): row.rate for row in rows if row.at(1.0) and (recipe := row.trained)}
    describing = dict[str, float]()
    on_cpu = choose_device(conditions.device).type == "cpu"
    threads = (conditions.threads or torch.get_num_threads(), torch.get_num_threads()) if on_cpu else (1, 1)
    arms = []
    for label in dict.fromkeys(label for label, _ in missing):
        recipes = [recipe for each, recipe in missing if each == label]
        first, pairs = recipes[0], sum(recipe.pairs for recipe in recipes)
        pace, network = pace_of(first), repr(first.network)
        if pace not in rates:
            progress.note(f"Timing {label}")
            rates[pace] = time_training(first, source, conditions)
        if network not in describing:
            describing[network] = time_describing(first, source, conditions)
        training, scoring = pairs / rates[pace], len(recipes) * scored / describing[network]
        hours = (threads[0] * training / 3600, threads[1] * scoring / 3600)
        arms.append(ArmCost(label, len(recipes), pairs, rates[pace], *hours))
    return Cost(tuple(arms))


def pace_of(recipe: Recipe) -> str:
    """Equal for recipes whose steps take the same time: numbers in the loss, rates and budget change nothing."""
    parts = (recipe.mining, recipe.weighting, recipe.optimizer, *recipe.loss)
    return repr([recipe.network, recipe.sampler, recipe.augment, recipe.branches, *map(type, parts)])


def time_training(recipe: Recipe, source: PatchSet | JoinedSets, conditions: Conditions) -> float:
    """Pairs per second, by the second half of a few steps."""
    short = replace(recipe, pairs=STEPS * recipe.sampler.pairs, needs_weights=False)
    with tempfile.TemporaryDirectory() as place:
        run = train(short, source, Path(place) / "run", replace(conditions, keep=(0.5, 1.0)))
        half, whole = (load_checkpoint(milestone_path(run, share), groups=()) for share in (0.5, 1.0))
    return (whole.step - half.step) * recipe.sampler.pairs / (whole.seconds - half.seconds)


def time_describing(recipe: Recipe, source: PatchSet | JoinedSets, conditions: Conditions) -> float:
    """Patches per second, as test sets are described."""
    precision = scoring_precision(conditions.precision)
    describer = NetworkDescriber(recipe.network.build(), recipe.name, conditions.device, precision)
    patches = source.take(np.arange(PATCHES) % len(source))
    describer.describe(patches[: PATCHES // 8])
    began = time.perf_counter()
    describer.describe(patches)
    return PATCHES / (time.perf_counter() - began)

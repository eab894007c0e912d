"""What a study will cost, before it is started: runs, pairs and core-hours, at rates that rows or a few steps show."""

import math
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from keypatch.benchmarks.evaluation import scoring_precision
from keypatch.commands.train import train
from keypatch.describers.network import NetworkDescriber
from keypatch.errors import Interrupted
from keypatch.networks import choose_device
from keypatch.patches import PatchSet
from keypatch.patches.patch_set import JoinedSets
from keypatch.progress import Progress
from keypatch.studies.rows import Trial
from keypatch.training import Recipe
from keypatch.training.conditions import Conditions

STEPS = 8  # of a training that is timed
PATCHES = 512  # described to time it


@dataclass(frozen=True)
class ArmCost:
    """What is still to be done for an arm; hours of one core, or of one GPU."""

    label: str
    runs: int  # to be trained; those at their end are only scored
    pairs: int  # of all runs
    rate: float  # pairs per second of training; nan where it is not known and nothing is trained
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


@dataclass(frozen=True)
class Todo:
    """What a row still lacks."""

    label: str
    recipe: Recipe
    trained: bool  # its run is at its end
    patches: int  # to be described for its scores


_TIMED: dict[tuple[str, int, Conditions], "Pace"] = {}  # in this process, by kind, side of the patches and conditions


@dataclass(frozen=True)
class Pace:
    """How fast something goes, and how many cores it keeps busy meanwhile; on a GPU its hours count, so one."""

    rate: float  # pairs or patches per second
    cores: float

    def hours(self, amount: float) -> float:
        return amount / self.rate * self.cores / 3600


def estimate(
    missing: Sequence[Todo],
    rows: Sequence[Trial],
    source: PatchSet | JoinedSets,
    conditions: Conditions,
    progress: Progress,
) -> Cost:
    """Of rows that are not finished.

    Finished `rows` say how fast a training is; what they do not is timed, once for all that must take as long.
    """
    known = ((row, row.trained) for row in rows if row.at(1.0))
    training = {kind_of(recipe): Pace(row.rate, row.run.get("threads", 1)) for row, recipe in known if recipe}
    describing = dict[str, Pace]()
    arms = []
    for label in dict.fromkeys(each.label for each in missing):
        rows_of_arm = [each for each in missing if each.label == label]
        runs = [each.recipe for each in rows_of_arm if not each.trained]
        first, pairs = rows_of_arm[0].recipe, sum(recipe.pairs for recipe in runs)
        kind, network = kind_of(first), repr(first.network)
        if runs and kind not in training:
            timed = (kind, source.side, conditions)
            if timed not in _TIMED:
                progress.note(f"Timing {label}")
                _TIMED[timed] = time_training(first, source, conditions)
            training[kind] = _TIMED[timed]
        if network not in describing:
            describing[network] = time_describing(first, source, conditions)
        pace = training.get(kind, Pace(math.nan, 1))
        hours = pace.hours(pairs) if runs else 0.0
        scoring = describing[network].hours(sum(each.patches for each in rows_of_arm))
        arms.append(ArmCost(label, len(runs), pairs, pace.rate, hours, scoring))
    return Cost(tuple(arms))


def kind_of(recipe: Recipe) -> str:
    """Equal for recipes whose steps take the same time: numbers in the loss, rates and budget change nothing."""
    parts = (recipe.mining, recipe.weighting, recipe.optimizer, *recipe.loss)
    return repr([recipe.network, recipe.sampler, recipe.augment, recipe.branches, *map(type, parts)])


class _Stopwatch(Progress):
    """Notes the time whenever a training tells how far it is."""

    def __init__(self) -> None:
        self.times: list[tuple[int, float, float]] = []  # pairs done, seconds, seconds of all cores

    def count(self, done: int, total: int, unit: str, detail: str = "") -> None:
        self.times.append((done, time.perf_counter(), time.process_time()))


def time_training(recipe: Recipe, source: PatchSet | JoinedSets, conditions: Conditions) -> Pace:
    """By some steps; the first ones, with compilation, do not count."""
    watch = _Stopwatch()
    short = replace(recipe, pairs=STEPS * recipe.sampler.pairs, needs_weights=False)
    with tempfile.TemporaryDirectory() as place:
        try:
            train(short, source, Path(place) / "run", conditions, progress=watch)
        except Interrupted:
            raise Interrupted from None  # the run is gone with its folder
    begun = [each for each in watch.times if each[0] > 0]
    first, last = (begun if len(begun) > 1 else watch.times)[0], watch.times[-1]
    return _pace(last[0] - first[0], last[1] - first[1], last[2] - first[2], conditions)


def time_describing(recipe: Recipe, source: PatchSet | JoinedSets, conditions: Conditions) -> Pace:
    """As test sets are described."""
    precision = scoring_precision(conditions.precision)
    describer = NetworkDescriber(recipe.network.build(), recipe.name, conditions.device, precision)
    patches = source.take(np.arange(PATCHES) % len(source))
    describer.describe(patches[: PATCHES // 8])
    began = time.perf_counter(), time.process_time()
    describer.describe(patches)
    return _pace(PATCHES, time.perf_counter() - began[0], time.process_time() - began[1], conditions)


def _pace(amount: int, seconds: float, of_cores: float, conditions: Conditions) -> Pace:
    on_cpu = choose_device(conditions.device).type == "cpu"
    return Pace(amount / seconds, of_cores / seconds if on_cpu else 1.0)

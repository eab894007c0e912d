"""The quickstart: a descriptor trained on embedded photographs and compared with SIFT, in minutes and offline."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from keypatch.benchmarks import Result, evaluate_ubc
from keypatch.describers import Describer, SiftDescriber
from keypatch.describers.network import NetworkDescriber
from keypatch.recipes import HARDNET
from keypatch.sampling import RandomPairs
from keypatch.studies.training import train
from keypatch.training import SGD, Recipe
from keypatch.training.checkpoints import load_run_weights
from keypatch.training.progress import Reporter, Silent

TRAIN, TEST = "embedded", "embedded-test"

# The paper's batch of 1024 and learning rate of 10 are for 50 million pairs; a thousandth of that budget wants
# more and smaller steps.
RECIPE = replace(
    HARDNET,
    name="quickstart",
    network=replace(HARDNET.network, dropout=0.1),
    sampler=RandomPairs(pairs=256),
    optimizer=SGD(lr=1.0, momentum=0.9, dampening=0.0, weight_decay=1e-4),
    pairs=50_000,
)


@dataclass(frozen=True)
class Quickstart:
    """The run folder and the results on the embedded test split, from hand-made to trained."""

    folder: Path
    results: tuple[Result, ...]


def quickstart(
    out: str | Path = "runs/quickstart", pairs: int | None = None, reporter: Reporter | None = None
) -> Quickstart:
    """Train on the embedded photographs, score SIFT, RootSIFT, the untrained and the trained network.

    A run that is already in `out` is gone on with, so that a second call only prints.
    """
    reporter = reporter or Silent()
    folder = Path(out)
    recipe = replace(RECIPE, pairs=pairs) if pairs is not None else RECIPE
    reporter.say("Cutting patches from the embedded photographs (once)")
    train(recipe, TRAIN, folder, resume=(folder / "recipe.toml").exists(), reporter=reporter)
    reporter.say("Scoring on photographs that were not trained on")
    trained = NetworkDescriber(load_run_weights(folder)[1], "trained")
    describers: tuple[Describer, ...] = (SiftDescriber(), SiftDescriber(root=True), _untrained(recipe), trained)
    results = tuple(evaluate_ubc(describer, TEST) for describer in describers)
    for result in results:
        result.save(folder / f"{result.descriptor}.json")
    return Quickstart(folder, results)


def _untrained(recipe: Recipe) -> Describer:
    """The network with the weights the training began from."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(recipe.seed)
        return NetworkDescriber(recipe.network.build().eval(), "untrained")

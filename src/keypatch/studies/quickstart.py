"""The quickstart: a descriptor trained on embedded photographs, compared with SIFT and shown; minutes, offline."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from keypatch.benchmarks import Result, evaluate_ubc
from keypatch.describers import Describer, SiftDescriber
from keypatch.describers.network import NetworkDescriber
from keypatch.recipes import HARDNET
from keypatch.reports import report
from keypatch.sampling import RandomPairs
from keypatch.studies.match_picture import draw_embedded_matches, small_png
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
    """The run folder, the results on the embedded test split, from hand-made to trained, and what shows them."""

    folder: Path
    results: tuple[Result, ...]
    picture: Path  # of matches
    page: Path  # the report


def quickstart(
    out: str | Path = "runs/quickstart", pairs: int | None = None, reporter: Reporter | None = None
) -> Quickstart:
    """Train on the embedded photographs, score SIFT, RootSIFT, the untrained and the trained network, show the results.

    A run that is already in `out` is gone on with, so that a second call only scores and shows.
    """
    reporter = reporter or Silent()
    folder = Path(out)
    recipe = replace(RECIPE, pairs=pairs) if pairs is not None else RECIPE
    reporter.say("Cutting patches from the embedded photographs (once)")
    train(recipe, TRAIN, folder, resume=(folder / "recipe.toml").exists(), reporter=reporter)
    reporter.say("Scoring on photographs that were not trained on")
    trained = NetworkDescriber(load_run_weights(folder)[1], "trained")
    describers: tuple[Describer, ...] = (SiftDescriber(), SiftDescriber(root=True), _untrained(recipe), trained)
    results = [evaluate_ubc(describer, TEST) for describer in describers]
    reporter.say("Matching a photograph with a turned view of it")
    picture = draw_embedded_matches(folder, folder / "match.png")
    pictures = {"a photograph and a turned view of it, matched": small_png(picture), **results[-1].pictures}
    results[-1] = replace(results[-1], pictures=pictures)
    for result in results:
        result.save(folder / f"{result.descriptor}.json")
    page = report([folder], folder / "report.html", title="Quickstart")
    return Quickstart(folder, tuple(results), picture, page)


def _untrained(recipe: Recipe) -> Describer:
    """The network with the weights the training began from."""
    with torch.random.fork_rng(devices=()):
        torch.manual_seed(recipe.seed)
        return NetworkDescriber(recipe.network.build().eval(), "untrained")

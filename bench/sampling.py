"""What choosing positives costs: a whole training step of AdaSample, in its forms, as a multiple of HardNet's.

A step makes the patches, describes candidates, chooses, trains and updates, on the embedded data, one after the other
where a training makes patches ahead. The contestants take turns:

    python bench/sampling.py --pairs 512 --rounds 5
"""

import argparse
import json
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import torch
from racing import race, take_turns

from keypatch.cli.main import answer
from keypatch.losses import Moment, State
from keypatch.patches import open_patches
from keypatch.recipes import RECIPES
from keypatch.training.batches import Batches
from keypatch.training.machine import choose_precision, keep_heap
from keypatch.training.optimizers import parameter_groups
from keypatch.training.step import Step, choose_pairs, chooser_of

CONTESTANTS = ("hardnet", "adasample", "adasample_few", "adasample_memory")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.contestant:
        keep_heap()
        take_turns(training_step(json.loads(arguments.contestant)["recipe"], arguments.pairs))
        return
    options = ["--pairs", str(arguments.pairs), "--threads", str(arguments.threads)]
    results = race(__file__, [{"recipe": name} for name in CONTESTANTS], options, arguments.rounds)
    print(f"{'recipe':18}{'pairs/s':>8}{'x hardnet':>11}")
    for name, result in zip(CONTESTANTS, results, strict=True):
        times = result["seconds"] / results[0]["seconds"]
        print(f"{name:18}{arguments.pairs / result['seconds']:8.0f}{times:11.2f}")


def training_step(name: str, pairs: int) -> Callable[[], object]:
    """The next step of a long training each time it is called."""
    recipe = replace(RECIPES[name], sampler=replace(RECIPES[name].sampler, pairs=pairs))  # type: ignore[type-var]
    source, device = open_patches("embedded"), torch.device("cpu")
    network = recipe.network.build().train()
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = recipe.optimizer.build(parameter_groups(network))
    step = Step(network, recipe, network.trunk, choose_precision("auto", device), None)
    batches = Batches(recipe, source, source.classes(), device)
    chooser, numbers = chooser_of(recipe), count(recipe.steps // 2)
    state: State = chooser.start(batches.classes, recipe.network.dim) if chooser else {}

    def run() -> None:
        nonlocal state
        moment = Moment(next(numbers), recipe.steps)
        batch = batches.make(int(moment.step))
        if chooser:
            batch, state = choose_pairs(batch, chooser, step, batches, state, moment)
        optimizer.zero_grad(set_to_none=True)
        _, described = step(batch, {}, moment)
        if chooser:
            state = chooser.observe(described, state, moment)
        optimizer.step()

    return run


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))

"""Pairs per second and memory against the size of the batch, on one rank or several.

    python bench/ranks.py --networks hardnet hynet --pairs 128 512 2048 --threads 2
    torchrun --nproc-per-node 2 bench/ranks.py --networks hardnet hynet --pairs 128 512 2048 --threads 1
    python bench/ranks.py --pairs 2048 --cache-gradients 256
    python bench/ranks.py --mining 32768 --of 8
    python bench/ranks.py --feed embedded

Patches are random and in memory: what is measured is the step, forward to optimizer, in float32; the best of --rounds
after one that warms up, of the slowest rank. "cpu" is processor time, in which other work on the machine counts for
little, and waiting for nothing. Memory is the largest of a rank, at first before the step. --mining is HyNet's mining
alone, on descriptors, as the first of --of ranks does it; --feed how fast a thread makes batches of a set of patches.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass, replace

import torch
from racing import peak_mb
from torch import Tensor

from keypatch.cli.main import answer
from keypatch.losses import Described, Moment
from keypatch.patches import open_patches
from keypatch.recipes import HARDNET, HYNET, SDGMNET, SOSNET
from keypatch.training import Recipe
from keypatch.training.batches import Batch, Batches
from keypatch.training.machine import choose_compile, compiled, keep_heap
from keypatch.training.optimizers import parameter_groups
from keypatch.training.ranks import Ranks, join_ranks
from keypatch.training.step import CHUNK, Step
from keypatch.training.whole_batch import see_whole_batch

RECIPES = {"hardnet": HARDNET, "hynet": HYNET, "sosnet": SOSNET, "sdgmnet": SDGMNET}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", choices=RECIPES, default=["hardnet", "hynet"])
    parser.add_argument("--pairs", type=int, nargs="+", default=[128, 512])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cache-gradients", type=int)
    parser.add_argument("--mining", type=int, nargs="+", default=[])
    parser.add_argument("--of", type=int, default=8)
    parser.add_argument("--feed")
    asked = parser.parse_args()
    torch.set_num_threads(asked.threads)
    if asked.mining:
        for pairs in asked.mining:
            mine(pairs, asked.of)
        return
    if asked.feed:
        for name in asked.networks:
            feed(RECIPES[name], asked.feed, asked.rounds)
        return
    keep_heap()
    with join_ranks() as ranks:
        if ranks.first:
            print("network   ranks  pairs   s/step  pairs/s  cpu s/step  cpu pairs/s  MB before  MB peak")
        for name in asked.networks:
            for pairs in asked.pairs:
                before, times = peak_mb(), steps(RECIPES[name], pairs, ranks, asked.cache_gradients, asked.rounds)
                found = ranks.gather_values((before, *times, peak_mb()))
                start, wall, work, peak = (max(column) for column in zip(*found, strict=True))
                if ranks.first:
                    both = f"{wall:9.3f}{pairs / wall:9.1f}{work:12.3f}{pairs / work:13.1f}"
                    print(f"{name:9}{ranks.size:6}{pairs:7}{both}{start:11.0f}{peak:9.0f}", flush=True)


def steps(recipe: Recipe, pairs: int, ranks: Ranks, cached: int | None, rounds: int) -> tuple[float, float]:
    """The best seconds of one step, and of processor time; all ranks start each together."""
    torch.manual_seed(0)
    network = recipe.network.build().train()
    see_whole_batch(network, network.layers, ranks, in_parts=cached is not None)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = recipe.optimizer.build(parameter_groups(network))
    trunk = network.trunk
    if choose_compile("auto", torch.device("cpu"), network.per_patch):
        trunk = compiled(trunk, print)
    chunk = CHUNK if network.per_patch else None
    step = Step(network, recipe, trunk, torch.float32, chunk, ranks, cached)
    whole = Batch.of_pairs(torch.rand((2 * pairs, 1, 32, 32), generator=torch.Generator().manual_seed(0)) * 255)
    own = ranks.share(pairs)
    x = whole.x.view(2, pairs, 1, 32, 32)[:, own.start : own.stop].flatten(0, 1)
    batch = Batch(x.contiguous(memory_format=torch.channels_last), whole.draw, own)
    taken = []
    for turn in range(rounds + 1):
        ranks.wait()
        begun = time.perf_counter(), time.process_time()
        optimizer.zero_grad(set_to_none=True)
        step(batch, {}, Moment(turn, 100))
        optimizer.step()
        taken.append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
    wall, work = (min(column) for column in zip(*taken[1:], strict=True))
    return wall, work


def feed(recipe: Recipe, data: str, rounds: int) -> None:
    source = open_patches(data)
    batches = Batches(recipe, source, source.classes(), torch.device("cpu"))
    batches.make(0)
    begun = time.process_time()
    for step in range(rounds):
        batches.make(step)
    rate = rounds * recipe.sampler.pairs / (time.process_time() - begun)
    print(f"{recipe.name}: batches of {recipe.sampler.pairs} pairs, {rate:.0f} pairs in a second of processor time")


@dataclass(frozen=True)
class _FirstOf:
    """The rows of the first rank; what the others would find is left out."""

    pairs: int
    size: int

    @property
    def own(self) -> range:
        return Ranks(0, self.size).share(self.pairs)

    def gather(self, own: Tensor) -> Tensor:
        return own.repeat(1, self.size)[:, : self.pairs]

    def sum(self, tensors: list[Tensor]) -> list[Tensor]:
        return list(tensors)


def mine(pairs: int, size: int) -> None:
    generator = torch.Generator().manual_seed(0)
    first, second = torch.randn((2, pairs, 128), generator=generator)
    batch = replace(Described.of_pairs(first, first + 0.1 * second, None), rows=_FirstOf(pairs, size))
    before, begun = peak_mb(), time.perf_counter()
    assert HYNET.mining is not None
    HYNET.mining(batch)
    seconds, added = time.perf_counter() - begun, peak_mb() - before
    print(f"mining {pairs:6} pairs, rows of 1 of {size} ranks: {seconds:7.2f} s, {added:6.0f} MB added", flush=True)


if __name__ == "__main__":
    code = answer(main, sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # gloo's threads abort now and then while the interpreter ends

"""How fast a training step is, as ratios against a plain loop in one run: `python bench/training.py [--out FILE.json]`.

The plain loop is eager float32 with kornia's module, two forward passes and the same loss and optimizer, once in a
process as it comes and once in one whose allocator keeps the heap, as ours does. Peak memory is that of a step: what
the process had before its first one is taken off.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from racing import gemm, gemm_flops, race, take_turns
from torch import Tensor

from keypatch.cli.main import answer
from keypatch.files import write_json
from keypatch.losses import Described, total_loss
from keypatch.networks import has_fast_bfloat16
from keypatch.provenance import provenance
from keypatch.recipes import HARDNET, HYNET
from keypatch.training import Recipe
from keypatch.training.batches import Batch
from keypatch.training.machine import choose_compile, compiled, keep_heap
from keypatch.training.optimizers import parameter_groups
from keypatch.training.step import CHUNK, Step
from keypatch.training.whole_batch import see_whole_batch

FLOPS_PER_PAIR = 2 * 3 * 78.18e6  # two patches; forward and backward cost three times the forward
RECIPES = {"hardnet": HARDNET, "hynet": HYNET}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1024)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--networks", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--processor-time", action="store_true", help="for one thread on a machine with other work")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--contestant", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    if arguments.contestant:
        clock = time.process_time if arguments.processor_time else time.perf_counter
        compete(json.loads(arguments.contestant), arguments.pairs, clock)
        return
    rows = []
    for network in arguments.networks:  # one after the other: the activations of all would not fit beside each other
        field = contestants(network)
        options = ["--pairs", str(arguments.pairs), "--threads", str(arguments.threads)]
        options += ["--processor-time"] if arguments.processor_time else []
        rows += rows_of(network, field, race(__file__, field, options, arguments.rounds), arguments.pairs)
    print_table(rows)
    if arguments.out:
        settings = {"pairs": arguments.pairs, "threads": arguments.threads, "rounds": arguments.rounds}
        settings |= {"processor_time": arguments.processor_time}
        write_json(
            arguments.out,
            {"bench": "training", "settings": settings, "rows": rows, "provenance": provenance().to_json()},
        )
        print(f"written to {arguments.out}")


def contestants(network: str) -> list[dict[str, Any]]:
    ours = ["float32", "bfloat16"] if has_fast_bfloat16(torch.device("cpu")) else ["float32"]
    return [
        {"who": "gemm", "network": network},
        {"who": "kornia", "network": network, "heap": "default"},
        {"who": "kornia", "network": network, "heap": "kept"},
        *({"who": "keypatch", "network": network, "heap": "kept", "precision": precision} for precision in ours),
    ]


def compete(contestant: dict[str, Any], pairs: int, clock: Callable[[], float]) -> None:
    if contestant["who"] == "gemm":
        take_turns(gemm(), clock)
        return
    if contestant["heap"] == "kept":
        keep_heap()
    recipe = RECIPES[contestant["network"]]
    x = torch.rand((2 * pairs, 1, 32, 32), generator=torch.Generator().manual_seed(0)) * 255
    make = plain_step if contestant["who"] == "kornia" else our_step
    work = make(recipe, x, contestant.get("precision", "float32"))
    take_turns(work, clock)


def plain_step(recipe: Recipe, x: Tensor, precision: str) -> Callable[[], object]:
    import kornia

    network = (kornia.feature.HyNet if recipe is HYNET else kornia.feature.HardNet)(pretrained=False).train()
    optimizer = recipe.optimizer.build(parameter_groups(network))
    anchors, positives = x.chunk(2)

    def step() -> None:
        optimizer.zero_grad()
        batch = Described.of_pairs(network(anchors), network(positives), recipe.mining)
        total_loss(recipe.loss, batch).value.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    return step


def our_step(recipe: Recipe, x: Tensor, precision: str) -> Callable[[], object]:
    network = recipe.network.build().train()
    see_whole_batch(network, network.layers)
    network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = recipe.optimizer.build(parameter_groups(network))
    fast = choose_compile("auto", x.device, network.per_patch)
    trunk = compiled(network.trunk, print) if fast else network.trunk
    step = Step(network, recipe, trunk, getattr(torch, precision), CHUNK if network.per_patch else None)
    batch = Batch.of_pairs(x.contiguous(memory_format=torch.channels_last))

    def run() -> None:
        optimizer.zero_grad(set_to_none=True)
        step(batch, {})
        optimizer.step()

    return run


def rows_of(
    network: str, field: list[dict[str, Any]], results: list[dict[str, float]], pairs: int
) -> list[dict[str, Any]]:
    flops = gemm_flops(results[0]["seconds"])
    default, kept = results[1], results[2]
    return [
        contestant
        | {
            "gemm_gflops": flops / 1e9,
            "pairs_per_second": pairs / result["seconds"],
            "share_of_gemm": FLOPS_PER_PAIR * pairs / result["seconds"] / flops,
            "times_plain": default["seconds"] / result["seconds"],
            "times_plain_heap_kept": kept["seconds"] / result["seconds"],
            "peak_mb": result["peak_mb"],
            "memory_of_plain": result["peak_mb"] / default["peak_mb"] if default["peak_mb"] else None,
        }
        for contestant, result in zip(field[1:], results[1:], strict=True)
    ]


def print_table(rows: list[dict[str, Any]]) -> None:
    print(
        f"{'network':9}{'who':10}{'precision':10}{'heap':9}{'pairs/s':>8}{'of gemm':>9}{'x plain':>9}"
        f"{'x plain, heap kept':>20}{'peak MB':>9}{'of plain':>10}"
    )
    for row in rows:
        print(
            f"{row['network']:9}{row['who']:10}{row.get('precision', 'float32'):10}{row['heap']:9}"
            f"{row['pairs_per_second']:8.0f}{row['share_of_gemm']:9.0%}{row['times_plain']:9.2f}"
            f"{row['times_plain_heap_kept']:20.2f}{row['peak_mb']:9.0f}{row['memory_of_plain'] or 0:10.2f}"
        )


if __name__ == "__main__":
    sys.exit(answer(main, sys.argv[1:]))

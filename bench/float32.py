"""What float32 changes in HardNet's gradient in one process, and why: `python bench/float32.py`.

The first step of a narrow network in float32 and in float64, for several batches: the relative difference of the
gradients, and how many activations are on the other side of a ReLU's zero.
"""

import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "training"))

from compare_ranks import apart, narrow, trainer_of

from keypatch.recipes import HARDNET
from keypatch.training import Recipe
from keypatch.training.ranks import ALONE


def main() -> None:
    torch.set_num_threads(1)
    for pairs in (11, 24):
        for seed in range(5):
            recipe = replace(narrow(HARDNET, pairs), seed=seed)
            (single, seen), (double, wanted) = (first_step(recipe, double) for double in (False, True))
            crossed = sum(int((a != b).sum()) for a, b in zip(seen, wanted, strict=True))
            off = apart(single, double)
            print(f"{pairs} pairs, seed {seed}: gradient off by {off:.1e}, activations across zero: {crossed}")


def first_step(recipe: Recipe, double: bool) -> tuple[Tensor, list[Tensor]]:
    """The gradient, and which activations are positive."""
    trainer = trainer_of(recipe, ALONE, None, double)
    positive: list[Tensor] = []
    for layer in trainer.network.layers:
        if isinstance(layer, nn.ReLU):
            layer.register_forward_hook(lambda _, inputs, output: positive.append(output.detach() > 0))
    trainer._advance(0, trainer.batches.make(0))
    gradients = [p.grad.flatten() for p in trainer.network.parameters() if p.grad is not None]
    return torch.cat(gradients), positive


if __name__ == "__main__":
    main()

"""Every named recipe trains, stops and resumes, the headline ones at their published width and the others narrow."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from keypatch.errors import Interrupted
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.recipes import HARDNET, HYNET, RECIPES, SDGMNET, SOSNET
from keypatch.training import Recipe
from keypatch.training.checkpoints import find_checkpoints, load_checkpoint
from keypatch.training.conditions import Conditions
from keypatch.training.loop import run_training

EXACT = Conditions(device="cpu", precision="float32", compile="off", threads=1, checkpoint_seconds=0.0)
HEADLINE = (HARDNET, HYNET, SDGMNET, SOSNET)


def shortened(recipe: Recipe) -> Recipe:
    """Three steps of 12 pairs."""
    network = recipe.network if recipe in HEADLINE else replace(recipe.network, width=4)  # type: ignore[call-arg]
    return replace(recipe, network=network, sampler=replace(recipe.sampler, pairs=12), pairs=36)  # type: ignore[type-var]


def no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


class StopAfterTwo(Progress):
    def count(self, done: int, total: int, unit: str = "", detail: str = "") -> None:
        if done == 24:  # two steps
            signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.name)
def test_three_steps_and_a_resumed_run_are_bit_identical(
    recipe: Recipe, small_set: PatchSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keypatch.training.loop._LOG_SECONDS", 0.0)
    recipe = shortened(recipe)
    whole = run_training(recipe, small_set, tmp_path / "whole", Progress(), conditions=EXACT)
    with pytest.raises(Interrupted):
        run_training(recipe, small_set, tmp_path / "cut", StopAfterTwo(), conditions=EXACT)
    cut = run_training(recipe, small_set, tmp_path / "cut", Progress(), conditions=EXACT, resume=True)
    first, second = (load_checkpoint(find_checkpoints(folder)[-1]) for folder in (whole, cut))
    assert first.step == second.step == 3
    for group in ("network", "optimizer", "loss_state", "sampler_state"):
        one, other = getattr(first, group), getattr(second, group)
        assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
    lines = (cut / "log.jsonl").read_text().splitlines()
    records = [json.loads(line, parse_constant=no_constant) for line in lines]  # neither nan nor infinity
    assert [record["step"] for record in records] == [1, 2, 3]
    assert all((record["negative"] is None) == (recipe.mining is None) for record in records)

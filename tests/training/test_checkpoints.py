"""Checkpoint files of other formats."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from keypatch.errors import DataError
from keypatch.patches import PatchSet
from keypatch.training import Recipe
from keypatch.training.checkpoints import find_checkpoints, load_checkpoint, load_run_weights
from keypatch.training.progress import Silent
from keypatch.training.running import Conditions, run

EXACT = Conditions(device="cpu", precision="float32", compile="off", threads=1, checkpoint_seconds=0.0)
SINCE = ("last_layer", "needs_weights")  # fields of a recipe that format 1 did not have


def rewritten(path: Path, number: int) -> None:
    """The checkpoint as a file of another format, without the sampler's state."""
    with safe_open(path, framework="pt") as file:
        header = file.metadata()
    tensors = {name: tensor for name, tensor in load_file(path).items() if not name.startswith("sampler_state/")}
    recipe = "".join(line for line in header["recipe"].splitlines(True) if not line.startswith(SINCE))
    assert recipe != header["recipe"]
    save_file(tensors, path, {**header, "recipe": recipe, "format_number": str(number)})


def test_a_file_of_format_1_is_loaded_and_gone_on_from(hynet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    whole = run(hynet, small_set, tmp_path / "whole", Silent(), conditions=EXACT)
    old = run(hynet, small_set, tmp_path / "old", Silent(), conditions=EXACT)
    before, last = find_checkpoints(old)
    last.unlink()
    rewritten(before, 1)
    checkpoint = load_checkpoint(before)
    assert checkpoint.step == 5 and checkpoint.recipe == hynet and not checkpoint.sampler_state
    assert load_run_weights(before)[0] == hynet.network
    run(hynet, small_set, old, Silent(), conditions=EXACT, resume=True)
    first, second = (load_checkpoint(find_checkpoints(folder)[-1]) for folder in (whole, old))
    assert second.step == 6
    for group in ("network", "optimizer", "average"):
        one, other = getattr(first, group), getattr(second, group)
        assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


def test_a_newer_format_is_refused(hynet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    path = find_checkpoints(run(hynet, small_set, tmp_path / "run", Silent(), conditions=EXACT))[-1]
    rewritten(path, 99)
    with pytest.raises(DataError, match="format 99 is newer"):
        load_checkpoint(path)

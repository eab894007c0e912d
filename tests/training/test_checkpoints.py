"""Checkpoint files of other formats."""

from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from keypatch.errors import DataError, KeypatchError
from keypatch.patches import PatchSet
from keypatch.progress import Progress
from keypatch.training import Recipe
from keypatch.training.checkpoints import find_checkpoints, load_checkpoint, load_run_weights
from keypatch.training.conditions import Conditions
from keypatch.training.loop import run_training

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


def test_a_file_of_format_1_is_loaded_and_resumed(hynet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    whole = run_training(hynet, small_set, tmp_path / "whole", Progress(), conditions=EXACT)
    old = run_training(hynet, small_set, tmp_path / "old", Progress(), conditions=EXACT)
    before, last = find_checkpoints(old)
    last.unlink()
    rewritten(before, 1)
    checkpoint = load_checkpoint(before)
    assert checkpoint.step == 5 and checkpoint.recipe == hynet and not checkpoint.sampler_state
    assert load_run_weights(before)[0] == hynet.network
    run_training(hynet, small_set, old, Progress(), conditions=EXACT, resume=True)
    first, second = (load_checkpoint(find_checkpoints(folder)[-1]) for folder in (whole, old))
    assert second.step == 6
    for group in ("network", "optimizer", "average"):
        one, other = getattr(first, group), getattr(second, group)
        assert one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


FIXTURE = Path(__file__).parents[1] / "fixtures" / "0.1" / "run" / "checkpoints" / "step-000000004.safetensors"


@pytest.mark.parametrize(
    ("entry", "value"),
    [
        ("format_number", None),
        ("format_number", "²"),
        ("recipe", None),
        ("recipe", "x = " + 2000 * "["),
        ("recipe", "x = " + 5000 * "1"),
        ("step", None),
        ("step", "²"),
        ("seconds", "long"),
        ("provenance", "[1]"),
        ("provenance", 100_000 * "["),
        ("provenance", None),
        ("training", "5"),
        ("training", '[{"name": "mine"}]'),
        ("training", '[{"name": "mine", "identity": "", "sources": [{"name": "a.jpg", "sha256": 1}]}]'),
    ],
)
def test_a_damaged_header_is_told_in_a_sentence(tmp_path: Path, entry: str, value: str | None) -> None:
    path = tmp_path / "c.safetensors"
    with safe_open(FIXTURE, framework="pt") as file:
        header = {**file.metadata(), entry: value}
    save_file(load_file(FIXTURE), path, {name: text for name, text in header.items() if text is not None})
    with pytest.raises(KeypatchError, match=r"c\.safetensors"):
        load_checkpoint(path)


def test_tensors_of_another_network_are_told(tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    with safe_open(FIXTURE, framework="pt") as file:
        header = file.metadata()
    save_file({"network/x": torch.ones(1), "average/x": torch.ones(1)}, path, header)
    with pytest.raises(DataError, match=r"c\.safetensors is not a readable checkpoint of this recipe"):
        load_run_weights(path)


def test_a_newer_format_is_refused(hynet: Recipe, small_set: PatchSet, tmp_path: Path) -> None:
    path = find_checkpoints(run_training(hynet, small_set, tmp_path / "run", Progress(), conditions=EXACT))[-1]
    rewritten(path, 99)
    with pytest.raises(DataError, match=r"newer keypatch .format 99, "):
        load_checkpoint(path)

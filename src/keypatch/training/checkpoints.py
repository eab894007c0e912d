"""Checkpoints: all that a run needs to resume exactly where it was, in one safetensors file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor

from keypatch.errors import DataError
from keypatch.files import Format, parse_json, reading, write_atomically
from keypatch.losses import State
from keypatch.networks import NetworkSpec, PatchNetwork
from keypatch.networks.weights import open_safetensors
from keypatch.patches.sources import TrainingSet
from keypatch.provenance import provenance
from keypatch.training.recipe import TRAINED, Recipe
from keypatch.training.recipe_files import network_from_toml, recipe_from_toml, recipe_to_toml

FORMAT = Format("keypatch-checkpoint", 2, "checkpoint")  # 1 had no sampler_state
GROUPS = ("network", "optimizer", "average", "loss_state", "sampler_state")
KEPT = 2  # the newest, and one before it


@dataclass(frozen=True)
class Checkpoint:
    """The state after `step` steps. Random numbers are functions of (seed, step), so these two are their state."""

    recipe: Recipe
    step: int
    seconds: float  # of training so far
    network: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    average: Mapping[str, Tensor]
    loss_state: Mapping[str, Tensor]
    sampler_state: Mapping[str, Tensor]
    provenance: Mapping[str, Any]
    training: tuple[TrainingSet, ...] = ()  # the sets it saw, those of the weights it started from among them


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    groups = {name: getattr(checkpoint, name) for name in GROUPS}
    tensors = {
        f"{group}/{name}": tensor.detach().cpu().contiguous()
        for group, named in groups.items()
        for name, tensor in named.items()
    }
    header = {
        **{name: str(value) for name, value in FORMAT.head().items()},
        "recipe": recipe_to_toml(checkpoint.recipe),
        "step": str(checkpoint.step),
        "seconds": str(checkpoint.seconds),
        "provenance": json.dumps(dict(checkpoint.provenance) or provenance().to_json()),
        "training": json.dumps([each.to_json() for each in checkpoint.training]),
    }
    with write_atomically(path) as file:
        file.write(save(tensors, header))


def load_checkpoint(path: Path, groups: Sequence[str] = GROUPS) -> Checkpoint:
    """The checkpoint, or only some groups of its tensors: a sampler's memory may be large."""
    header, named = _read(path, groups)
    with reading(path, FORMAT.title):
        recipe, step, seconds = header["recipe"], int(header["step"]), float(header["seconds"])
        origin = dict(parse_json(header["provenance"]))
        training = _training(header)
    trained = recipe_from_toml(recipe, f"{path} (recipe)", TRAINED)
    return Checkpoint(trained, step, seconds, provenance=origin, training=training, **named)


def _training(header: Mapping[str, str]) -> tuple[TrainingSet, ...]:
    """None of a file of an older version."""
    return tuple(TrainingSet.from_json(each) for each in parse_json(header.get("training", "[]")))


def _read(path: Path, groups: Sequence[str]) -> tuple[dict[str, str], dict[str, dict[str, Tensor]]]:
    """The header, and the tensors by group."""
    with open_safetensors(path) as file:
        header = file.metadata() or {}
        wanted = [name for name in file.keys() if name.startswith(tuple(f"{group}/" for group in groups))]  # noqa: SIM118 (not a mapping)
        tensors = {name: file.get_tensor(name) for name in wanted}
    FORMAT.check(header, path)
    named: dict[str, dict[str, Tensor]] = {group: {} for group in GROUPS}
    for name, tensor in tensors.items():
        group, _, rest = name.partition("/")
        named[group][rest] = tensor
    return header, named


def find_checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a run folder, oldest first."""
    return sorted((run / "checkpoints").glob("step-*.safetensors"))


def newest_checkpoint(run: Path) -> Path | None:
    found = find_checkpoints(run)
    return found[-1] if found else None


def checkpoint_path(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step-{step:09d}.safetensors"


def milestone_path(run: Path, share: float) -> Path:
    """The weights after a share of the run, which later checkpoints do not replace: at-025, at-000.1 for 0.001."""
    whole, _, part = f"{100 * share:.6f}".rstrip("0").partition(".")
    return run / "checkpoints" / f"at-{whole:0>3}{'.' * bool(part)}{part}.safetensors"


def epoch_path(run: Path, pairs: int) -> Path:
    """The weights after so many pairs, kept likewise."""
    return run / "checkpoints" / f"pairs-{pairs:012d}.safetensors"


def find_kept(run: Path) -> list[Path]:
    """The weights that a run was told to keep: after shares of it, then after epochs, each oldest first."""
    folder = run / "checkpoints"
    milestones = sorted(folder.glob("at-*.safetensors"), key=lambda file: file.stem)  # at-025 before at-025.5
    return [*milestones, *sorted(folder.glob("pairs-*.safetensors"))]


def load_run_weights(path: Path) -> tuple[NetworkSpec, PatchNetwork]:
    """The network of a run folder's newest checkpoint, or of a checkpoint file: its moving average where it has one."""
    file = path
    if path.is_dir():
        newest = newest_checkpoint(path)
        if newest is None:
            raise DataError(f"{path}: the run has no checkpoint yet. Train it until the first is saved.")
        file = newest
    header, tensors = _read(file, ("network", "average"))
    with reading(file, FORMAT.title):
        recipe = header["recipe"]
    spec = network_from_toml(recipe, f"{file} (recipe)")
    network = spec.build()
    with reading(file, "checkpoint of this recipe"):
        network.load_state_dict(tensors["average"] or tensors["network"])
    return spec, network.eval()


def read_training(path: Path) -> tuple[TrainingSet, ...]:
    """The sets that a run folder's newest checkpoint, or a checkpoint file, was trained on."""
    file = newest_checkpoint(path) if path.is_dir() else path
    if file is None:
        return ()
    with open_safetensors(file) as opened, reading(file, FORMAT.title):
        return _training(opened.metadata() or {})


def read_recipe_text(path: Path) -> str:
    """The recipe, as TOML, that a run folder's newest checkpoint, or a checkpoint file, was trained by."""
    file = newest_checkpoint(path) if path.is_dir() else path
    if file is None:
        return ""
    with open_safetensors(file) as opened, reading(file, FORMAT.title):
        return str((opened.metadata() or {})["recipe"])


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The optimizer's state as named tensors: "<parameter number>.<entry>"."""
    state = optimizer.state_dict()["state"]
    return {
        f"{number}.{entry}": torch.as_tensor(value)
        for number, entries in state.items()
        for entry, value in entries.items()
        if value is not None
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        number, _, entry = name.partition(".")
        state.setdefault(int(number), {})[entry] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def flat(states: Mapping[str, State]) -> dict[str, Tensor]:
    """States by owner as "<owner>/<name>" entries."""
    return {f"{owner}/{name}": tensor for owner, state in states.items() for name, tensor in state.items()}


def nested(entries: Mapping[str, Tensor], device: torch.device) -> Mapping[str, State]:
    """The inverse of `flat`, on a device."""
    states: dict[str, dict[str, Tensor]] = {}
    for entry, tensor in entries.items():
        owner, _, name = entry.partition("/")
        states.setdefault(owner, {})[name] = tensor.to(device)
    return states


def scalars(states: Mapping[str, State]) -> dict[str, float]:
    """What of the states is a single number: running means, rates, powers."""
    return {entry: float(tensor) for entry, tensor in flat(states).items() if tensor.numel() == 1}

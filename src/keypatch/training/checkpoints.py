"""Checkpoints: all that a run needs to go on exactly where it was, in one safetensors file."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from keypatch.errors import DataError
from keypatch.files import write_atomically
from keypatch.networks import NetworkSpec, PatchNetwork
from keypatch.provenance import provenance
from keypatch.training.recipe import Recipe
from keypatch.training.recipe_files import recipe_from_toml, recipe_to_toml

FORMAT = "keypatch-checkpoint"
FORMAT_NUMBER = 2  # 1 had no sampler_state
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


def save_checkpoint(path: Path, checkpoint: Checkpoint) -> None:
    groups = {name: getattr(checkpoint, name) for name in GROUPS}
    tensors = {
        f"{group}/{name}": tensor.detach().cpu().contiguous()
        for group, named in groups.items()
        for name, tensor in named.items()
    }
    header = {
        "format": FORMAT,
        "format_number": str(FORMAT_NUMBER),
        "recipe": recipe_to_toml(checkpoint.recipe),
        "step": str(checkpoint.step),
        "seconds": str(checkpoint.seconds),
        "provenance": json.dumps(dict(checkpoint.provenance) or provenance().to_json()),
    }
    with write_atomically(path) as file:
        file.write(save(tensors, header))


def load_checkpoint(path: Path, groups: Sequence[str] = GROUPS) -> Checkpoint:
    """The checkpoint, of its tensors only those of some groups if so asked: a sampler's memory may be large."""
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            wanted = [name for name in file.keys() if name.startswith(tuple(f"{group}/" for group in groups))]  # noqa: SIM118 (not a mapping)
            tensors = {name: file.get_tensor(name) for name in wanted}
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path}: cannot be read as a checkpoint ({error}); it may be cut off.") from error
    if header.get("format") != FORMAT:
        raise DataError(f"{path}: not a checkpoint of a keypatch run.")
    if int(header["format_number"]) > FORMAT_NUMBER:
        raise DataError(f"{path}: checkpoint format {header['format_number']} is newer than this keypatch; update it.")
    named: dict[str, dict[str, Tensor]] = {group: {} for group in GROUPS}
    for name, tensor in tensors.items():
        group, _, rest = name.partition("/")
        named[group][rest] = tensor
    return Checkpoint(
        recipe=recipe_from_toml(header["recipe"], f"{path} (recipe)"),
        step=int(header["step"]),
        seconds=float(header["seconds"]),
        provenance=json.loads(header["provenance"]),
        **named,
    )


def find_checkpoints(run: Path) -> list[Path]:
    """The checkpoints of a run folder, oldest first."""
    return sorted((run / "checkpoints").glob("step-*.safetensors"))


def newest_checkpoint(run: Path) -> Path | None:
    found = find_checkpoints(run)
    return found[-1] if found else None


def checkpoint_path(run: Path, step: int) -> Path:
    return run / "checkpoints" / f"step-{step:09d}.safetensors"


def milestone_path(run: Path, share: float) -> Path:
    """The weights after a share of the run, which later checkpoints do not replace."""
    return run / "checkpoints" / f"at-{round(100 * share):03d}.safetensors"


def load_run_weights(path: Path) -> tuple[NetworkSpec, PatchNetwork]:
    """The network of a run folder's newest checkpoint, or of a checkpoint file: its moving average where it has one."""
    file = path
    if path.is_dir():
        newest = newest_checkpoint(path)
        if newest is None:
            raise DataError(f"{path}: the run has no checkpoint yet; let it train until its first one.")
        file = newest
    checkpoint = load_checkpoint(file, ("network", "average"))
    spec: NetworkSpec = checkpoint.recipe.network
    network = spec.build()
    network.load_state_dict(dict(checkpoint.average or checkpoint.network))
    return spec, network.eval()


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

"""Checkpoints published by others: HardNet, SOSNet, HyNet, SDGMNet, HardNet8, TFeat and HardTFeat; modules of torch."""

import pickle
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from keypatch.errors import DataError
from keypatch.files import read_head, reading
from keypatch.networks.embedding import MODULE
from keypatch.networks.frn import EPS
from keypatch.networks.patch_network import NetworkSpec, PatchNetwork
from keypatch.networks.published_names import Family, families
from keypatch.networks.weights import fill, read_safetensors
from keypatch.sandbox import try_reading

_CONTAINERS = ("state_dict", "model_state_dict")  # HardNet's and SDGMNet's files hold the tensors under these keys


def load_published(path: Path) -> tuple[NetworkSpec, PatchNetwork]:
    """The network of a published checkpoint, recognized by its tensor names, in float32 and evaluation mode.

    `.pth`, `.pt`, `.params` (read without running any code in them) or `.safetensors`.
    """
    tensors = read_tensors(Path(path))
    family = _recognize(tensors)
    if family is None:
        names = ", ".join(family.title for family in families())
        raise DataError(f"{path} does not have the tensor names of any known network ({names}).")
    _check_eps(tensors, path)
    spec = family.spec(tensors)
    renamed = {family.names.get(name, name): t for name, t in tensors.items() if name not in family.unused}
    linear = renamed.get("layers.linear.weight")
    if linear is not None and linear.ndim == 4:  # HardTFeat writes its last layer as a convolution over the whole map
        renamed["layers.linear.weight"] = linear.flatten(1)
    return spec, fill(spec, renamed, path, {ours: theirs for theirs, ours in family.names.items()})


def start_module(spec: NetworkSpec, path: Path, seed: int) -> tuple[dict[str, Tensor], list[str]] | None:
    """All tensors of a network of `image_network`, its module's from a file by their names, the others drawn by `seed`.

    Also the names in the file that the module does not have, such as its classifier. None of any other network.

    Raises:
        DataError: the file cannot be read, or lacks a tensor of the module or has it in another shape.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        own = spec.build().state_dict()
    names = {name: name.removeprefix(MODULE) for name in own if name.startswith(MODULE)}
    if not names:
        return None
    tensors = read_tensors(path)
    given = {name: tensors[theirs] for name, theirs in names.items() if theirs in tensors}
    drawn = {name: tensor for name, tensor in own.items() if name not in names}
    filled = fill(spec, drawn | given, path, names)
    return filled.state_dict(), [name for name in tensors if MODULE + name not in names]


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file of others by their names; nothing but tensors is loaded."""
    if read_head(path)[8:9] == b"{":  # after the header's length
        return read_safetensors(path)[1]
    try_reading(load_tensors, path)
    with reading(path, "torch checkpoint"):
        try:
            return _tensors_in(load_tensors(path), path)
        except pickle.UnpicklingError as error:
            asked = re.search(r"GLOBAL ([\w.]+)", str(error))  # amid advice to load it without this protection
            more = f" and asks for {asked[1]}" if asked else ""
            raise DataError(
                f"{path} holds more than tensors{more}. Only tensors are loaded, since anything else could run code. "
                "Save the state_dict by itself."
            ) from error


def load_tensors(path: Path) -> Any:
    """What a checkpoint of torch holds, code excepted; its claims of sizes are believed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of pickle protocols that it may not know
        return torch.load(path, map_location="cpu", weights_only=True)


def _tensors_in(content: Any, path: Path) -> dict[str, Tensor]:
    for key in _CONTAINERS:
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not content or not all(isinstance(t, Tensor) for t in content.values()):
        raise DataError(f"{path} does not hold a state dict (tensors by name). Save the network's state_dict().")
    return {str(name).removeprefix("module."): tensor for name, tensor in content.items()}


def _recognize(tensors: Mapping[str, Tensor]) -> Family | None:
    """The family whose names agree best, at least by half: a file that lacks a tensor is still recognized."""

    def agreement(family: Family) -> float:
        theirs, known = _significant(tensors), _significant({*family.names, *family.unused})
        return len(theirs & known) / len(theirs | known)

    best = max(families(), key=agreement)
    return best if agreement(best) > 0.5 else None


def _significant(names: Iterable[str]) -> set[str]:
    return {name for name in names if not name.endswith("num_batches_tracked")}  # absent from files of torch < 0.4.1


def _check_eps(tensors: Mapping[str, Tensor], path: Path) -> None:
    for name, tensor in tensors.items():
        if name.endswith(".eps") and not torch.allclose(tensor.double().abs(), torch.tensor(EPS).double(), rtol=0.05):
            raise DataError(
                f"{path}: {name} is not {EPS}; filter response normalization with a learned eps is not supported."
            )

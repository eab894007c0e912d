"""Weight files: safetensors with the network's own description, preprocessing included, in the header."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor, nn

from keypatch.errors import DataError
from keypatch.files import Format, parse_json, reading, write_atomically
from keypatch.networks.patch_network import NetworkSpec, PatchNetwork
from keypatch.networks.table import spec_from_dict, spec_to_dict

FORMAT = Format("keypatch-weights", 1, "weight file")
_HALF_FROM = 1024  # entries: smaller tensors (statistics, biases) weigh nothing and need the range of float32


def save_weights(
    path: Path, module: nn.Module, spec: NetworkSpec, card: Mapping[str, Any], *, half: bool = False
) -> None:
    """Write the module's tensors; with `half`, the weights of convolutions and linear layers as float16."""
    tensors = {name: _stored(tensor, half) for name, tensor in module.state_dict().items()}
    header = {
        **{name: str(value) for name, value in FORMAT.head().items()},
        "network": json.dumps(spec_to_dict(spec)),
        "card": json.dumps(dict(card)),
    }
    with write_atomically(Path(path)) as file:
        file.write(save(tensors, header))


def load_weights(path: Path) -> tuple[NetworkSpec, PatchNetwork]:
    """The network of a weight file, in float32 on the CPU and in evaluation mode."""
    header, tensors = read_safetensors(path)
    FORMAT.check(header, path)
    with reading(path, FORMAT.title):
        spec = spec_from_dict(parse_json(header["network"]), f"{path}: network")
    return spec, fill(spec, tensors, path)


def read_weights_card(path: Path) -> dict[str, Any]:
    """What `save_weights` was told about the weights: data, scores, terms."""
    with open_safetensors(path) as file:
        header = file.metadata() or {}
    FORMAT.check(header, path)
    with reading(path, FORMAT.title):
        return dict(parse_json(header.get("card", "{}")))


def fill(
    spec: NetworkSpec, tensors: Mapping[str, Tensor], path: Path, names: Mapping[str, str] | None = None
) -> PatchNetwork:
    """The network of `spec` with these tensors, in evaluation mode; raises DataError if they do not fit it.

    `names` gives for our tensor names those in the file, for the messages.
    """
    with torch.device("meta"):  # no memory, no drawing of weights that are thrown away
        module = spec.build()
    own = module.state_dict()
    named, title = dict(names or {}), f"{type(spec).__name__}(dim={spec.dim})"
    missing = [name for name in own if name not in tensors and not name.endswith("num_batches_tracked")]
    surplus = [name for name in tensors if name not in own]
    if missing or surplus:
        fault = "lacks the tensor" if missing else "has the unknown tensor"
        name = (missing or surplus)[0]
        raise DataError(f"{path} {fault} {named.get(name, name)} for {title}. It is damaged, or for another network.")
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape:
            raise DataError(
                f"{path}: tensor {named.get(name, name)} has shape {tuple(tensor.shape)}, but {title} needs "
                f"{tuple(own[name].shape)}. The file is damaged, or for another network."
            )
        if not torch.isfinite(tensor).all():
            raise DataError(f"{path}: tensor {named.get(name, name)} holds values that are not finite.")
    counters = {name: torch.zeros_like(tensor, device="cpu") for name, tensor in own.items() if name not in tensors}
    known = counters | {name: t.to(own[name].dtype) for name, t in tensors.items()}
    module.load_state_dict(known, assign=True)
    if any(tensor.is_meta for tensor in module.buffers()):  # a module of others may have buffers that no file holds
        module = spec.build()
        module.load_state_dict(known)
    return module.eval()


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Header and tensors of a safetensors file; raises DataError where it cannot be read."""
    with open_safetensors(path) as file:
        return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


@contextmanager
def open_safetensors(path: Path) -> Iterator[Any]:
    """A safetensors file opened for reading; raises DataError where it cannot be read."""
    with reading(path, "safetensors file"), safe_open(path, framework="pt") as file:
        yield file


def _stored(tensor: Tensor, half: bool) -> Tensor:
    tensor = tensor.detach().cpu().contiguous()
    return tensor.half() if half and tensor.is_floating_point() and tensor.numel() >= _HALF_FROM else tensor


def hash_weights(module: nn.Module) -> str:
    """SHA-256 of the tensors and their names: the same whatever file they came from."""
    digest = hashlib.sha256()
    for name, tensor in sorted(module.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()

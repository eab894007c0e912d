"""A network as a describer: the fast path from uint8 patches to descriptors."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from keypatch.describers.folding import fold
from keypatch.describers.kernels import load_library
from keypatch.describers.protocol import check_patches
from keypatch.errors import KeypatchError
from keypatch.networks import PatchNetwork, choose_device, has_fast_bfloat16, hash_weights, prepare
from keypatch.networks.devices import cpu_capability, in_threads
from keypatch.patches.sources import TrainingSet

_PRECISIONS = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
HALF_PRECISION = 0.02  # three times what was found on untrained networks (docs/speed.md)
_CHUNK_PIXELS = 48 * 32 * 32  # fastest of 16 to 96 patches of 32x32: larger maps are faulted in anew by the allocator
_BATCH_PIXELS = 4096 * 32 * 32  # on a GPU: 256 MB for the widest map of the trunk in half precision

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Plan:
    """How to describe: where, in which precision, and how many pixels of prepared patches at once."""

    device: torch.device
    dtype: torch.dtype
    pixels: int

    def sentence(self) -> str:
        precision = str(self.dtype).removeprefix("torch.")
        if self.device.type != "cpu":
            return f"on {self.device} in {precision}"
        kernels = "the compiled kernels" if load_library() is not None else "torch's operators (no compiled kernels)"
        threads = torch.get_num_threads()
        half = self.dtype != torch.float32
        mixed = ", Winograd's convolutions in float32" if half and load_library() is not None else ""
        bound = f"; entries differ from float32 by at most {HALF_PRECISION}" if half else ""
        return f"on the CPU ({cpu_capability()}, {threads} threads) with {kernels} in {precision}{mixed}{bound}"


def choose_plan(device: str = "auto", precision: str = "auto") -> Plan:
    """The fastest way that is right: half precision on CUDA, bfloat16 on a processor that has it, float32 elsewhere.

    Half precision moves an entry of a descriptor by `HALF_PRECISION` of its length at most. Benchmarks ask for float32.
    """
    place = choose_device(device)
    if precision not in ("auto", *_PRECISIONS):
        raise KeypatchError(f'There is no precision "{precision}". Choose auto, {", ".join(_PRECISIONS)}.')
    half = torch.float16 if place.type == "cuda" else torch.bfloat16 if has_fast_bfloat16(place) else torch.float32
    dtype = _PRECISIONS.get(precision, half)
    if place.type == "cpu" and dtype == torch.float16:
        raise KeypatchError(
            "float16 needs a GPU. Choose --precision float32, or bfloat16 if the processor supports it."
        )
    if place.type == "cpu" and dtype == torch.bfloat16 and not has_fast_bfloat16(place):
        raise KeypatchError("bfloat16 is far slower than float32 on this processor. Choose --precision float32.")
    return Plan(place, dtype, _CHUNK_PIXELS if place.type == "cpu" else _BATCH_PIXELS)


class NetworkDescriber:
    """Descriptors of a network as it was when this was made, always in evaluation mode.

    On the CPU, chunks that fit the cache go to several threads. A descriptor does not depend on the patches beside it.
    """

    def __init__(
        self,
        module: PatchNetwork,
        name: str,
        device: str = "auto",
        precision: str = "auto",
        training: Sequence[TrainingSet] = (),
    ) -> None:
        self.name = name
        self.training = tuple(training)
        self.dim = module.dim
        self.patch_size = module.preprocessing.side
        self.channels = module.preprocessing.channels
        self.patch_sigmas = module.preprocessing.patch_sigmas
        self.unit_length = module.unit_length
        self.weights_hash = hash_weights(module)
        self.plan = choose_plan(device, precision)
        self._preprocessing = module.preprocessing
        self._module = module
        self._network = fold(module, self.plan.device, self.plan.dtype)
        _LOG.info("%s is computed %s.", name, self.plan.sentence())

    def __getstate__(self) -> dict[str, Any]:
        """For another process, which describes on the same kind of device and in the same precision."""
        if hash_weights(self._module) != self.weights_hash:
            raise KeypatchError(
                f"The network of {self.name} has changed since this describer was made from it. Make a new one."
            )
        return {name: value for name, value in self.__dict__.items() if name != "_network"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._network = fold(self._module, self.plan.device, self.plan.dtype)

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        """(n, side, side) grey patches of any side to (n, dim); of a network of images in colour also (n, 3, ...)."""
        check_patches(patches, self.channels)
        at_once = max(1, self.plan.pixels // self.patch_size**2)
        if self.plan.device.type == "cpu":
            return in_chunks(patches, at_once, self.dim, lambda chunk: self._describe(chunk).numpy())
        parts = [self._describe(patches[start : start + at_once]) for start in range(0, len(patches), at_once)]
        return torch.cat(parts).cpu().numpy() if parts else np.empty((0, self.dim), np.float32)

    def _describe(self, patches: NDArray[np.uint8]) -> Tensor:
        tensor = torch.from_numpy(np.array(patches))  # a copy: a memory map may be read-only
        if self.plan.device.type == "cuda":
            tensor = tensor.pin_memory()
        return self._network(prepare(tensor.to(self.plan.device, non_blocking=True), self._preprocessing))


def in_chunks(
    patches: NDArray[np.uint8], at_once: int, dim: int, describe: Callable[[NDArray[np.uint8]], NDArray[np.float32]]
) -> NDArray[np.float32]:
    """(n, dim) descriptors, chunk by chunk of at most `at_once` patches, on several threads."""
    descriptors = np.empty((len(patches), dim), np.float32)
    threads = torch.get_num_threads()
    rounds = -(-len(patches) // (at_once * threads))
    at_once = max(1, -(-len(patches) // max(1, rounds * threads)))  # the same share for every thread

    def describe_from(start: int) -> None:
        descriptors[start : start + at_once] = describe(patches[start : start + at_once])

    for _ in in_threads(describe_from, range(0, len(patches), at_once)):
        pass
    return descriptors

"""Where to compute, and what the processor can do."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

from keypatch.errors import KeypatchError

Made = TypeVar("Made")


def choose_device(name: str) -> torch.device:
    """The device called "auto", "cpu", "cuda" (or "cuda:1") or "mps"; "auto" is the best there is."""
    if name == "auto":
        return torch.device(next(kind for kind in ("cuda", "mps", "cpu") if _is_available(kind)))
    kind = name.split(":")[0]
    if kind not in ("cpu", "cuda", "mps"):
        raise KeypatchError(f'There is no device "{name}". Choose auto, cpu, cuda or mps.')
    if not _is_available(kind):
        raise KeypatchError(f"This machine, or this build of torch, has no {kind} device. Choose --device cpu or auto.")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise KeypatchError(f'"{name}" is not a device. Write cuda, or cuda:1 for the second one.') from None
    if kind == "cuda" and device.index is not None and device.index >= torch.cuda.device_count():
        raise KeypatchError(
            f'There is no device "{name}": this machine has {torch.cuda.device_count()}, numbered from cuda:0.'
        )
    return device


_VECTORS = ("DEFAULT", "AVX2", "AVX512")  # torch's names, narrowest first


def cpu_capability() -> str:
    """The vectors torch computes with: "DEFAULT", "AVX2", "AVX512", or those of another family of processors.

    $KEYPATCH_CPU (default, avx2) lowers it, so that what keypatch chooses and compiles can be tried as on a lesser
    processor; torch itself listens to ATEN_CPU_CAPABILITY and ONEDNN_MAX_CPU_ISA.
    """
    found = torch.backends.cpu.get_cpu_capability()
    asked = os.environ.get("KEYPATCH_CPU", found).upper()
    if asked not in (*_VECTORS, found):
        raise KeypatchError(f"KEYPATCH_CPU={asked.lower()} is not a kind of processor. Choose default, avx2 or avx512.")
    if found not in _VECTORS:
        return "DEFAULT" if asked == "DEFAULT" else found
    return min(found, asked, key=_VECTORS.index)


def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is faster than float32 there; a processor without the instructions is ten times slower in it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    # Private names that may be gone in another torch: without the answer, float32 is always right.
    flags = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    has_instructions = any(flag is not None and flag() for flag in flags)
    return has_instructions and cpu_capability() == "AVX512" and _is_used_by_onednn()


def _is_used_by_onednn() -> bool:
    """Whether oneDNN, which does the convolutions, takes bfloat16: ONEDNN_MAX_CPU_ISA can forbid it."""
    try:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    except (AttributeError, RuntimeError):
        return False


def _is_available(kind: str) -> bool:
    if kind == "cuda":
        return torch.cuda.is_available()
    return kind == "cpu" or torch.backends.mps.is_available()


def in_threads(
    work: Callable[[int], Made], numbers: Sequence[int], device: torch.device | None = None
) -> Iterator[Made]:
    """What is made of each number, in their order; on the CPU several at a time.

    They go to as many Python threads as torch would use, each computing on one: short operators are not worth sharing.
    """
    threads = torch.get_num_threads()
    if threads == 1 or len(numbers) < 2 or (device is not None and device.type != "cpu"):
        yield from map(work, numbers)
        return
    try:
        with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
            yield from pool.map(work, numbers)
    finally:
        torch.set_num_threads(threads)  # the workers' setting is also what later threads would start with

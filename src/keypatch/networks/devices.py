"""Where to compute, and what the processor can do."""

import torch

from keypatch.errors import KeypatchError


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
            f'There is no device "{name}": this machine has {torch.cuda.device_count()}, from cuda:0 on.'
        )
    return device


def has_fast_bfloat16(device: torch.device) -> bool:
    """Whether bfloat16 is faster than float32 there; a processor without the instructions is ten times slower in it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    # Private names that may be gone in another torch: without the answer, float32 is always right.
    flags = (getattr(torch.cpu, name, None) for name in ("_is_avx512_bf16_supported", "_is_amx_tile_supported"))
    return any(flag is not None and flag() for flag in flags)


def _is_available(kind: str) -> bool:
    if kind == "cuda":
        return torch.cuda.is_available()
    return kind == "cpu" or torch.backends.mps.is_available()

"""What this machine can do for a training: precision, compilation, memory."""

import atexit
import ctypes
import os
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from keypatch.cache import private_folder
from keypatch.errors import RecipeError
from keypatch.networks import has_fast_bfloat16

Precision = Literal["auto", "float32", "bfloat16"]
Trunk = Callable[[Tensor], Tensor]


def keep_heap() -> None:
    """Tell glibc to keep freed memory: else every large activation of every step is faulted in again.

    It acts on the whole process and memory then stays at its peak, so only a training or a command calls it.
    Other C libraries are left alone.
    """
    if sys.platform != "linux":
        return
    libc = ctypes.CDLL(None)
    if hasattr(libc, "gnu_get_libc_version"):
        libc.mallopt(-4, 0)  # M_MMAP_MAX: no block comes from mmap, which would give it back on free
        libc.mallopt(-1, -1)  # M_TRIM_THRESHOLD: never; the largest number is 2 GB, which a step of 1024 pairs frees


def choose_precision(name: str, device: torch.device) -> torch.dtype:
    """The type of the convolutions; mining, losses and the last normalization are float32 always."""
    if name == "auto":
        return torch.bfloat16 if has_fast_bfloat16(device) else torch.float32
    if name not in ("float32", "bfloat16"):
        raise RecipeError(f"--precision {name}: choose auto, float32 or bfloat16.")
    return torch.float32 if name == "float32" else torch.bfloat16


def choose_compile(name: str, device: torch.device, per_patch: bool) -> bool:
    """Whether to compile the trunk.

    Compiling fuses FRN and TLU, which pays; a trunk of convolution, batch normalization and ReLU gained nothing on
    the one processor it was measured on (AVX-512, 512 pairs: 331 against 334 pairs/s, in bfloat16 594 for both).
    """
    if name not in ("auto", "on", "off"):
        raise RecipeError(f"--compile {name}: choose auto, on or off.")
    if name == "auto":
        return per_patch and (device.type == "cuda" or (device.type == "cpu" and has_compiler()))
    return name == "on"


def has_compiler() -> bool:
    """Whether torch.compile finds the C++ compiler it needs on a CPU."""
    return any(shutil.which(name) for name in (("cl",) if sys.platform == "win32" else ("g++", "clang++", "c++")))


def compiled(trunk: Trunk, report: Callable[[str], None]) -> Trunk:
    """The trunk under torch.compile, or as it is from the first call at which compiling fails.

    What torch compiles it also loads again, by default from a folder that any user can make in the system's temporary
    one: here, unless TORCHINDUCTOR_CACHE_DIR is set, it goes to a private one. Headers would stay there: none are kept.
    """
    os.environ.setdefault("TORCHINDUCTOR_CPP_CACHE_PRECOMPILE_HEADERS", "0")
    chosen = Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", "torchinductor_"))
    if chosen.name.startswith("torchinductor_"):  # its default, which torch sets itself when an optimizer is made
        try:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(private_folder("torch"))
        except OSError:
            os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder = tempfile.mkdtemp(prefix="keypatch-")
            atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        fast: Trunk | None = torch.compile(trunk, dynamic=False)

    def call(x: Tensor) -> Tensor:
        nonlocal fast
        if fast is None:
            return trunk(x)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)  # torch's own, on its first compilation
                return fast(x)
        except torch._dynamo.exc.TorchDynamoException as error:
            report(f"torch.compile does not work here; continuing without it ({type(error).__name__}).")
            fast = None
            return trunk(x)

    return call

"""Kernels in C++ that outrun the libraries, built once per machine where there is a compiler.

Winograd's convolution, one and a half times as fast as any library's direct one (docs/speed.md), and the normalization
of filter responses, which torch does in five passes over maps that do not fit the cache.
"""

import ctypes
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from keypatch.cache import is_private, make_once, private_folder
from keypatch.networks.devices import cpu_capability
from keypatch.networks.frn import EPS, FilterResponse

_SOURCE = Path(__file__).with_suffix(".cpp")
_EVERYWHERE = ("-O3", "-std=c++17", "-shared", "-fPIC")
_FLAGS = {"AVX512": ("-mavx512f", "-mavx2", "-mfma"), "AVX2": ("-mavx2", "-mfma")}
_TRANSFORM = (  # G: the weights' transform is G w G^T
    (1 / 4, 0, 0),
    (-1 / 6, -1 / 6, -1 / 6),
    (-1 / 6, 1 / 6, -1 / 6),
    (1 / 24, 1 / 12, 1 / 6),
    (1 / 24, -1 / 12, 1 / 6),
    (0, 0, 1),
)


def winograd(weight: Tensor, bias: Tensor, relu: bool) -> Callable[[Tensor], Tensor] | None:
    """The convolution (out, in, 3, 3) with stride and padding 1, for float32 maps with sides divisible by 4.

    None where the channels do not fill the processor's vectors, or there is no compiler for this processor.
    """
    library = load_library()
    if library is None or weight.shape[1] % library.lanes() or weight.shape[0] % (2 * library.lanes()):
        return None
    return _bind(library, weight, bias, relu)


def _bind(library: ctypes.CDLL, weight: Tensor, bias: Tensor, relu: bool) -> Callable[[Tensor], Tensor]:
    outside, inside = weight.shape[:2]
    transform = torch.tensor(_TRANSFORM, dtype=torch.float64)
    u = torch.einsum("ar,oirs,bs->aboi", transform, weight.double(), transform).flatten(0, 1)
    u = u.reshape(36, -1, 2 * library.lanes(), inside).transpose(2, 3).float().contiguous()  # (36, slices, in, slice)
    bias = bias.float().contiguous()

    def convolution(x: Tensor) -> Tensor:
        x = x.float().contiguous(memory_format=torch.channels_last)
        n, _, side, _ = x.shape
        y = torch.empty((n, outside, side, side), memory_format=torch.channels_last)
        pointers = (tensor.data_ptr() for tensor in (x, u, bias, y))
        library.convolve(*pointers, n, side, inside, outside, int(relu))
        return y

    return convolution


def filter_responses(layer: FilterResponse, dtype: torch.dtype) -> Callable[[Tensor], Tensor] | None:
    """`FilterResponse` of float32 or bfloat16 maps, written as `dtype`, one of these; may overwrite its input.

    None where `winograd` has none.
    """
    library = load_library()
    if library is None or layer.weight.numel() % (2 * library.lanes()):
        return None
    parameters = tuple(p.detach().float().flatten().clone() for p in (layer.weight, layer.bias, layer.tau))

    def normalize(x: Tensor) -> Tensor:
        x = x.contiguous(memory_format=torch.channels_last)
        y = x if x.dtype == dtype else torch.empty_like(x, dtype=dtype)
        pointers = (tensor.data_ptr() for tensor in (x, y, *parameters))
        n, channels, height, width = x.shape
        halves = (int(tensor.dtype == torch.bfloat16) for tensor in (x, y))
        library.normalize(*pointers, n, height * width, channels, EPS, *halves)
        return y

    return normalize


@cache
def load_library() -> ctypes.CDLL | None:
    """The compiled code, built on first use into the cache folder; None where that is not possible."""
    flags = _FLAGS.get(cpu_capability())
    if flags is None or sys.platform != "linux":
        return None
    flags = (*_EVERYWHERE, *flags)
    digest = hashlib.sha256(_SOURCE.read_bytes() + " ".join(flags).encode()).hexdigest()[:16]
    try:
        path = private_folder("native") / f"kernels-{digest}.so"
        make_once(path, lambda place: _build(place, flags), is_private)  # loading a library already runs its code
        library = ctypes.CDLL(str(path))
    except (OSError, subprocess.SubprocessError):  # no compiler or no place; made on a machine with another C library
        return None
    library.convolve.argtypes = [ctypes.c_void_p] * 4 + [ctypes.c_int] * 5
    library.normalize.argtypes = [ctypes.c_void_p] * 5 + [ctypes.c_int] * 3 + [ctypes.c_float] + [ctypes.c_int] * 2
    library.convolve.restype = library.normalize.restype = None
    return library if _is_right(library) else None


def _build(path: Path, flags: tuple[str, ...]) -> None:
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        raise FileNotFoundError("There is no compiler.")
    scratch = path.with_name(f"{path.name}.scratch")  # also for the compiler's own files, which it leaves when killed
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        words = [compiler, *flags, "-o", str(scratch / path.name), str(_SOURCE)]
        subprocess.run(words, check=True, capture_output=True, timeout=120, env={**os.environ, "TMPDIR": str(scratch)})
        (scratch / path.name).rename(path)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    path.chmod(0o700)


def _is_right(library: ctypes.CDLL) -> bool:
    """Whether it gives torch's numbers on a small example."""
    channels = 2 * library.lanes()
    generator = torch.Generator().manual_seed(0)
    x = torch.randn((3, channels, 8, 8), generator=generator)
    weight = torch.randn((channels, channels, 3, 3), generator=generator)
    bias = torch.randn(channels, generator=generator)
    expected = F.conv2d(x, weight, bias, padding=1).relu()
    # the transforms lose about a digit: 1e-3 of entries of size 17, where a wrong index would show in the first digit
    return torch.allclose(_bind(library, weight, bias, True)(x), expected, atol=1e-2)

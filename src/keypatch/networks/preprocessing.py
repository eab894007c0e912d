"""What a network expects of a patch: saved with its weights, so that nobody feeds it another kind of input."""

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from keypatch.errors import KeypatchError
from keypatch.settings import CheckedFields, option

_FLAT = 1e-4  # of the value range: below it, x - mean is rounding noise that the division would blow up
_PATCH_EPS = 1e-7  # HardNet
_INSTANCE_EPS = 1e-5  # torch's InstanceNorm2d, as in SOSNet and TFeat


@dataclass(frozen=True)
class Preprocessing(CheckedFields):
    """From uint8 patches of any size to the network's input.

    `normalization`: "none"; "patch", HardNet's (x - mean) / (std + 1e-7) with N-1 in the std; "instance", SOSNet's and
    TFeat's (x - mean) / sqrt(var + 1e-5) with the biased variance; "fixed", (x - `mean`) / `std` with a training set's
    own figures.
    `resize`: "bilinear" samples without smoothing (the exact 2x2 mean from 64 to 32), "antialias" smooths like PIL.
    `patch_sigmas`: side of the image square a patch shows, in sigmas of its keypoint.
    """

    size: int = option(32, least=1)
    value_range: float = option(1.0, above=0)  # white is 1 or 255
    resize: Literal["bilinear", "antialias"] = "bilinear"
    normalization: Literal["none", "patch", "instance", "fixed"] = "none"
    mean: float = 0.0
    std: float = option(1.0, above=0)
    patch_sigmas: float = option(24.0, above=0)


def prepare(patches: Tensor, preprocessing: Preprocessing) -> Tensor:
    """The network input (n, 1, size, size) of grey patches (n, h, w), uint8 or float in 0..255, on the same device.

    float32, or float64 where the patches are float64. Each patch is treated by itself; a flat one becomes zeros under
    "patch" and "instance".
    """
    if patches.ndim != 3:
        raise KeypatchError(f"Patches must be an array (n, height, width), found shape {tuple(patches.shape)}.")
    x = patches.unsqueeze(1)
    x = x if x.dtype == torch.float64 else x.to(torch.float32)
    x = _resize(x, preprocessing)
    if preprocessing.value_range != 255:
        x = x * (preprocessing.value_range / 255)
    return _normalize(x, preprocessing)


def _resize(x: Tensor, preprocessing: Preprocessing) -> Tensor:
    size = preprocessing.size
    if x.shape[2:] == (size, size):
        return x
    antialias = preprocessing.resize == "antialias"
    if not antialias and x.shape[2:] == (2 * size, 2 * size):
        return F.avg_pool2d(x, 2)  # the same numbers as bilinear at exactly 2:1, in a tenth of the time
    if x.shape[0] == 0:  # not len(x), which fixes the batch size of an exported graph
        return x.new_zeros((0, 1, size, size))
    return F.interpolate(x, (size, size), mode="bilinear", align_corners=False, antialias=antialias)


def _normalize(x: Tensor, preprocessing: Preprocessing) -> Tensor:
    if preprocessing.normalization == "none":
        return x
    if preprocessing.normalization == "fixed":
        return (x - preprocessing.mean) / preprocessing.std
    centred = x - x.mean((1, 2, 3), keepdim=True)
    energy = centred.square().sum((1, 2, 3), keepdim=True)
    pixels = preprocessing.size**2
    if preprocessing.normalization == "patch":
        scale = 1 / ((energy / max(pixels - 1, 1)).sqrt() + _PATCH_EPS)
    else:
        scale = (energy / pixels + _INSTANCE_EPS).rsqrt()
    flat = energy < pixels * (_FLAT * preprocessing.value_range) ** 2
    return centred * scale.masked_fill(flat, 0.0)

"""What a network expects of a patch: saved with its weights, so that nobody feeds it another kind of input."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from keypatch.errors import KeypatchError, RecipeError
from keypatch.settings import CheckedFields, option

_FLAT = 1e-4  # of the value range: below it, x - mean is rounding noise that the division would blow up
_PATCH_EPS = 1e-7  # HardNet
_INSTANCE_EPS = 1e-5  # torch's InstanceNorm2d, as in SOSNet and TFeat


@dataclass(frozen=True)
class Preprocessing(CheckedFields):
    """From uint8 patches of any size to the network's input.

    `channels`: 1 for grey, 3 for images in colour (red, green, blue).
    `crop_from`: images are resized to this side, and the square of `size` is cropped from them: in training at random
    places (`Augmentation.window`), else from the centre.
    `normalization`: "none"; "patch", HardNet's (x - mean) / (std + 1e-7) with N-1 in the std; "instance", SOSNet's and
    TFeat's (x - mean) / sqrt(var + 1e-5) with the biased variance; "fixed", (x - `mean`) / `std` with a training set's
    own figures, one for all channels or one for each.
    `resize`: "bilinear" samples without smoothing (the exact 2x2 mean from 64 to 32), "antialias" smooths like PIL.
    `patch_sigmas`: side of the image square a patch shows, in sigmas of its keypoint.
    """

    size: int = option(32, least=1)
    channels: Literal[1, 3] = 1
    crop_from: int = option(0, "Side from which the input is cropped; 0 disables cropping.", least=0)
    value_range: float = option(1.0, above=0)  # white is 1 or 255
    resize: Literal["bilinear", "antialias"] = "bilinear"
    normalization: Literal["none", "patch", "instance", "fixed"] = "none"
    mean: float | tuple[float, ...] = 0.0
    std: float | tuple[float, ...] = option(1.0, above=0)
    patch_sigmas: float = option(24.0, above=0)

    def __post_init__(self) -> None:
        super().__post_init__()
        if 0 < self.crop_from < self.size:
            raise RecipeError(
                f"crop_from is {self.crop_from}, but the network takes squares of {self.size} pixels, which cannot be "
                "cropped from less. Give a larger side, or 0."
            )
        for name in ("mean", "std"):
            given = getattr(self, name)
            if isinstance(given, tuple) and len(given) not in (1, self.channels):
                raise RecipeError(f"{name} has {len(given)} numbers, but the input has {self.channels} channels.")

    @property
    def side(self) -> int:
        """That patches are resized to, before anything is cropped."""
        return self.crop_from or self.size


def prepare(patches: Tensor, preprocessing: Preprocessing, corners: NDArray[np.int64] | None = None) -> Tensor:
    """The network input (n, channels, size, size) of patches, uint8 or float in 0..255, on the same device.

    Grey patches (n, h, w), repeated for a network of three channels, or patches in colour (n, 3, h, w). `corners`
    (n, 2) are the row and column where each crop begins; None crops the centre. float32, or float64 where the patches
    are float64. Each patch is treated by itself; a flat one becomes zeros under "patch" and "instance".
    """
    if patches.ndim != 3 and (patches.ndim != 4 or patches.shape[1] != 3):
        raise KeypatchError(
            f"Patches must be an array (n, height, width), or (n, 3, height, width) in colour, found shape "
            f"{tuple(patches.shape)}."
        )
    if patches.ndim == 4 and preprocessing.channels == 1:
        raise KeypatchError(
            "The patches are in colour, but the network takes grey ones. Read them as grey, or choose a network with "
            "--set network.preprocessing.channels=3."
        )
    x = patches.unsqueeze(1) if patches.ndim == 3 else patches
    x = x if x.dtype == torch.float64 else x.to(torch.float32)
    x = _resize(x, preprocessing)
    if preprocessing.crop_from:
        x = _crop(x, preprocessing.size, corners)
    if preprocessing.value_range != 255:
        x = x * (preprocessing.value_range / 255)
    if x.shape[1] != preprocessing.channels:
        x = x.expand(-1, preprocessing.channels, -1, -1)
    return _normalize(x, preprocessing)


def _crop(x: Tensor, size: int, corners: NDArray[np.int64] | None) -> Tensor:
    if corners is None or x.shape[0] == 0:
        first = (x.shape[-1] - size) // 2
        return x[..., first : first + size, first : first + size]
    return torch.stack([x[i, :, r : r + size, c : c + size] for i, (r, c) in enumerate(corners)])


def _resize(x: Tensor, preprocessing: Preprocessing) -> Tensor:
    size = preprocessing.side
    if x.shape[2:] == (size, size):
        return x
    antialias = preprocessing.resize == "antialias"
    if not antialias and x.shape[2:] == (2 * size, 2 * size):
        return F.avg_pool2d(x, 2)  # the same numbers as bilinear at exactly 2:1, in a tenth of the time
    if x.shape[0] == 0:  # not len(x), which fixes the batch size of an exported graph
        return x.new_zeros((0, x.shape[1], size, size))
    return F.interpolate(x, (size, size), mode="bilinear", align_corners=False, antialias=antialias)


def _normalize(x: Tensor, preprocessing: Preprocessing) -> Tensor:
    if preprocessing.normalization == "none":
        return x
    if preprocessing.normalization == "fixed":
        return (x - _by_channel(preprocessing.mean, x)) / _by_channel(preprocessing.std, x)
    centred = x - x.mean((1, 2, 3), keepdim=True)
    energy = centred.square().sum((1, 2, 3), keepdim=True)
    pixels = x.shape[1] * preprocessing.size**2
    if preprocessing.normalization == "patch":
        scale = 1 / ((energy / max(pixels - 1, 1)).sqrt() + _PATCH_EPS)
    else:
        scale = (energy / pixels + _INSTANCE_EPS).rsqrt()
    flat = energy < pixels * (_FLAT * preprocessing.value_range) ** 2
    return centred * scale.masked_fill(flat, 0.0)


def _by_channel(values: float | tuple[float, ...], x: Tensor) -> float | Tensor:
    return x.new_tensor(values).view(1, -1, 1, 1) if isinstance(values, tuple) else values

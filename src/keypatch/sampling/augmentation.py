"""What may change between the views of a patch: symmetries, inexact frames, light."""

from dataclasses import dataclass
from typing import Any, Literal

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from keypatch.settings import CheckedFields, option

Flips = Literal["none", "dihedral", "hardnet", "hynet", "mirror"]
Floats = NDArray[np.float64]
Shape = tuple[int, int]  # pairs, views


@dataclass(frozen=True, eq=False)
class Place:
    """Which patches of a batch are changed: all numbers of the batch are drawn, so that each patch has its own.

    `rows` of its pairs, and of each row the `columns` (rows, k); all where None.
    """

    batch: Shape
    rows: range | None = None
    columns: NDArray[np.int64] | None = None

    def part(self, drawn: NDArray[Any]) -> NDArray[Any]:
        """Of what was drawn for the batch (pairs, views or 1, ...), the numbers of these patches."""
        whole = np.broadcast_to(drawn, (*self.batch, *drawn.shape[2:]))
        mine = whole if self.rows is None else whole[self.rows.start : self.rows.stop]
        return mine if self.columns is None else mine[np.arange(len(mine))[:, None], self.columns]


@dataclass(frozen=True)
class Augmentation(CheckedFields):
    """Changes drawn for each pair; those named in `shared` are the same for all its patches.

    Detector noise is what an interest point detector gets wrong: standard deviations of angle, log scale, place and
    shape, always independent for each patch. `detector_noise` multiplies all four; 0 is the papers' own augmentation.
    """

    flips: Flips = "dihedral"
    detector_noise: float = option(1.0, least=0)
    noise_angle: float = option(10.0, least=0)  # degrees
    noise_log_scale: float = option(0.13, least=0)
    noise_shift: float = option(0.6, least=0)  # sigmas of the interest point, in x and in y
    noise_anisotropy: float = option(0.08, least=0)  # log of the ratio of the axes, halved
    rotation: float = option(0.0, least=0)  # degrees, uniform in +-rotation (HardNet's option: 5)
    crop: float = option(0.0, least=0, below=1)  # area uniform in 1-crop..1, sides' ratio in 0.9..1.1 (HardNet's: 0.1)
    brightness: float = option(0.0, least=0)  # standard deviation, grey levels
    contrast: float = option(0.0, least=0)  # standard deviation of its logarithm
    shared: tuple[Literal["flips", "crop", "light"], ...] = ("flips",)
    window: Literal["random", "centre"] = "random"  # where a network's input is cropped (Preprocessing.crop_from)

    def __call__(
        self, patches: Tensor, patch_sigmas: float, rng: np.random.Generator, place: Place | None = None
    ) -> Tensor:
        """Changed patches on the device of `patches`, (n, views, [3,] side, side), usually two views; values 0..255.

        Every random number comes from `rng` on the CPU, so a batch is the same on every device. Detector noise is drawn
        last: without it all else stays as it is.
        """
        place = place or Place((patches.shape[0], patches.shape[1]))
        patches = _flip(patches, place.part(self._symmetries(place.batch, rng)))
        light = self._light(place.batch, rng)
        frames = self._frames(place.batch, patch_sigmas, rng)
        if frames is not None:
            patches = _warp(patches, place.part(frames))
        return patches if light is None else _relight(patches, *(place.part(each) for each in light))

    def corners(self, place: Place, margin: int, rng: np.random.Generator) -> NDArray[np.int64] | None:
        """Row and column where the crop of each patch begins, 0..margin; None: all are cropped at the centre.

        (views * n, 2), all first views before the second ones. Images are always cropped by themselves, as papers on
        whole images do.
        """
        if not margin or self.window != "random":
            return None
        return place.part(rng.integers(0, margin + 1, (*place.batch, 2))).swapaxes(0, 1).reshape(-1, 2)

    def _shape(self, what: str, shape: Shape) -> Shape:
        """How many numbers to draw: one for a pair where `what` is shared."""
        return (shape[0], 1) if what in self.shared else shape

    def _symmetries(self, shape: Shape, rng: np.random.Generator) -> NDArray[np.int64]:
        """One of the 8 symmetries of the square for each patch: bit 0 transposes, 1 mirrors, 2 turns over."""
        size = self._shape("flips", shape)
        if self.flips == "none":
            drawn = np.zeros(size, dtype=np.int64)
        elif self.flips == "dihedral":
            drawn = rng.integers(0, 8, size)
        elif self.flips == "hardnet":  # transpose and horizontal mirror, half each: 4 of the 8
            drawn = rng.integers(0, 4, size)
        elif self.flips == "mirror":  # left and right
            drawn = 2 * rng.integers(0, 2, size)
        else:  # HyNet: half of the pairs turned by 90, 180 or 270 degrees, then half mirrored vertically
            quarter_turns = np.array([0, 3, 6, 5])[rng.integers(1, 4, size) * rng.integers(0, 2, size)]
            drawn = quarter_turns ^ (4 * rng.integers(0, 2, size))
        return np.broadcast_to(drawn, shape).astype(np.int64)

    def _frames(self, shape: Shape, patch_sigmas: float, rng: np.random.Generator) -> Floats | None:
        """Affine maps (n, views, 2, 3) of the patch square [-1, 1]^2 to where its pixels are; None if all stay."""
        if not (self.detector_noise or self.rotation or self.crop):
            return None
        frames = np.zeros((*shape, 2, 3))
        frames[..., :2] = np.eye(2)
        if self.rotation or self.crop:
            frames[:] = self._crops(self._shape("crop", shape), rng)
        if self.detector_noise:
            noise = self._detector_noise(shape, rng)
            frames[..., 2] += noise[..., 2] * 2 / patch_sigmas
            frames[..., :2] = noise[..., :2] @ frames[..., :2]
        return frames

    def _crops(self, shape: Shape, rng: np.random.Generator) -> Floats:
        """Small rotations and random resized crops (*shape, 2, 3)."""
        area = rng.uniform(1 - self.crop, 1, shape)
        ratio = np.exp(rng.uniform(np.log(0.9), -np.log(0.9), shape)) if self.crop else np.ones(shape)
        half = np.stack([np.sqrt(area * ratio), np.sqrt(area / ratio)], axis=-1).clip(max=1)
        turn = _rotations(np.radians(rng.uniform(-self.rotation, self.rotation, shape)))
        place = (1 - half) * rng.uniform(-1, 1, half.shape)
        return np.concatenate([turn * half[..., None, :], place[..., None]], axis=-1)

    def _detector_noise(self, shape: Shape, rng: np.random.Generator) -> Floats:
        """Affine maps (n, views, 2, 3); the shift is in sigmas."""
        angle, log_scale, axes = rng.standard_normal((3, *shape)) * self.detector_noise
        direction = _rotations(rng.uniform(0, np.pi, shape))
        stretch = np.exp(self.noise_anisotropy * np.stack([axes, -axes], -1))
        stretched = (direction * stretch[..., None, :]) @ direction.swapaxes(-1, -2)
        similarity = np.exp(self.noise_log_scale * log_scale)[..., None, None] * _rotations(
            np.radians(self.noise_angle) * angle
        )
        shift = rng.standard_normal((*shape, 2, 1)) * (self.detector_noise * self.noise_shift)
        return np.concatenate([stretched @ similarity, shift], axis=-1)

    def _light(self, batch: Shape, rng: np.random.Generator) -> tuple[Floats, Floats] | None:
        """Gain and offset of the pixels, (pairs, views or 1); None if they stay."""
        if not (self.brightness or self.contrast):
            return None
        shape = self._shape("light", batch)
        return np.exp(self.contrast * rng.standard_normal(shape)), self.brightness * rng.standard_normal(shape)


def turn_patches(patches: NDArray[np.uint8], degrees: Floats) -> NDArray[np.uint8]:
    """Patches (..., [3,] side, side) rotated about their centres, the border mirrored; 0 degrees leaves them alone."""
    side = patches.shape[-1]
    centre = ((side - 1) / 2, (side - 1) / 2)
    turned = patches.reshape(-1, side, side).copy()
    angles = degrees.ravel().repeat(len(turned) // max(1, degrees.size))
    for i in np.flatnonzero(angles):
        matrix = cv2.getRotationMatrix2D(centre, float(angles[i]), 1.0)
        turned[i] = cv2.warpAffine(turned[i], matrix, (side, side), None, cv2.INTER_LINEAR, cv2.BORDER_REFLECT_101)
    return turned.reshape(patches.shape)


def _relight(patches: Tensor, gain: Floats, offset: Floats) -> Tensor:
    """Patches (n, views, [3,] side, side) with the contrast about their mean and the brightness of (n, views)."""
    pixels = patches.float()
    each = (*gain.shape, *[1] * (pixels.ndim - 2))
    times, plus = (torch.from_numpy(of.reshape(each).copy()).to(patches.device, torch.float32) for of in (gain, offset))
    mean = pixels.mean(tuple(range(2, pixels.ndim)), keepdim=True)
    return ((pixels - mean) * times + mean + plus).clamp(0, 255)


def _rotations(radians: Floats) -> Floats:
    cos, sin = np.cos(radians), np.sin(radians)
    return np.stack([np.stack([cos, -sin], -1), np.stack([sin, cos], -1)], -2)


def _flip(patches: Tensor, symmetries: NDArray[np.int64]) -> Tensor:
    """Each patch under its symmetry; grouped, so that pixels are only moved."""
    flat = patches.flatten(0, 1).clone()
    for symmetry in np.unique(symmetries[symmetries > 0]):
        where = torch.from_numpy(np.flatnonzero(symmetries == symmetry)).to(patches.device)
        moved = flat[where]
        if symmetry & 1:
            moved = moved.transpose(-1, -2)
        if symmetry & 2:
            moved = moved.flip(-1)
        if symmetry & 4:
            moved = moved.flip(-2)
        flat[where] = moved
    return flat.reshape(patches.shape)


def _warp(patches: Tensor, frames: Floats) -> Tensor:
    """Patches sampled bilinearly where `frames` says, pixels repeated beyond the border.

    OpenCV's loop is several times faster than torch's grid_sample on a CPU and agrees with it to its 1/32 px steps.
    """
    if patches.device.type == "cpu":
        return _warp_on_cpu(patches, frames)
    side = patches.shape[-1]
    flat = patches.reshape(frames[..., 0, 0].size, -1, side, side).float()
    theta = torch.from_numpy(frames.reshape(-1, 2, 3)).to(flat.device, torch.float32)
    grid = F.affine_grid(theta, list(flat.shape), align_corners=False)
    return F.grid_sample(flat, grid, "bilinear", "border", align_corners=False).reshape(patches.shape)


def _warp_on_cpu(patches: Tensor, frames: Floats) -> Tensor:
    side = patches.shape[-1]
    linear, shift = frames.reshape(-1, 2, 3)[..., :2], frames.reshape(-1, 2, 3)[..., 2]
    # pixel i of the patch lies at (2 i + 1) / side - 1 in the square [-1, 1]^2
    origin = (linear.sum(-1) * (1 / side - 1) + shift + 1) * (side / 2) - 0.5
    maps = np.concatenate([linear, origin[..., None]], axis=-1)
    source = patches.reshape(-1, side, side).numpy()
    warped = np.empty_like(source)
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    planes = len(source) // max(1, len(maps))  # of a patch: three in colour
    for patch, matrix, out in zip(source, maps.repeat(planes, axis=0), warped, strict=True):
        cv2.warpAffine(patch, matrix, (side, side), out, flags, cv2.BORDER_REPLICATE)
    return torch.from_numpy(warped).reshape(patches.shape)

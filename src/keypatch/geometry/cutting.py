"""The one patch cutter."""

import math
from collections.abc import Iterator
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry.keypoints import Keypoints

# The blur that makes an image fit for steps of 1.41 to 2 pixels. Measured against patches integrated over every patch
# pixel (scikit-image's brick, grass, gravel, camera): without it the error reaches 22 % of the contrast at a step of 2,
# with it 8 %.
SOFTENING = 0.65

_BILINEAR = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP

Image = NDArray[np.uint8] | NDArray[np.float32]


def cut_patches(image: Image, keypoints: Keypoints, patch_sigmas: float = 24.0, side: int = 64) -> NDArray[np.uint8]:
    """The patches (n, side, side) around the keypoints of a grey image (h, w), uint8 or float32 with values 0..255.

    A patch is the square of patch_sigmas * sigma pixels a side, turned by the angle (and sheared by the shape). The
    keypoint lies at the patch's ((side - 1) / 2, (side - 1) / 2); half a side from it lie the patch's edges, not the
    centres of its outermost pixels. Beyond the image its border is repeated.
    """
    _check_arguments(image, patch_sigmas, side)
    pixels = np.empty((len(keypoints), side, side), image.dtype)
    steps = keypoints.frames() * (patch_sigmas / side)  # columns: one patch pixel right, one down, in image pixels
    half_octaves = _half_octaves(steps, max(image.shape))
    corners = keypoints.xy - steps @ np.full(2, (side - 1) / 2)  # where the patch's pixel (0, 0) lies
    # cv2.pyrDown keeps pixel 0 at 0, so a level only divides coordinates
    warps = np.concatenate([steps, corners[:, :, None]], axis=2) / 2.0 ** (half_octaves // 2)[:, None, None]
    for half_octave, level in _pyramid(image, half_octaves):
        for i in np.flatnonzero(half_octaves == half_octave):
            cv2.warpAffine(level, warps[i], (side, side), pixels[i], _BILINEAR, cv2.BORDER_REPLICATE)
    if pixels.dtype == np.uint8:
        return pixels
    return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)


def _half_octaves(steps: NDArray[np.float64], image_side: int) -> NDArray[np.int64]:
    """Which image of the pyramid suits each patch: floor(2 log2 of the pixels between samples), at least 0.

    A bilinear sample sees two pixels across, so sampling every 1 to 1.41 pixels does little harm, and the image is the
    one where the step is that; a coarser one, as rounding log2 to octaves would choose, loses up to a quarter of the
    contrast of fine texture. The larger stretch of a sheared frame decides: rather a little softer in one direction
    than aliased in the other.
    """
    stretch = np.asarray(np.linalg.norm(steps, ord=2, axis=(1, 2)), np.float64)
    coarsest = 2 * int(math.log2(image_side)) + 1
    return np.asarray(np.clip(np.floor(2 * np.log2(stretch)), 0, coarsest), np.int64)


def _pyramid(image: Image, half_octaves: NDArray[np.int64]) -> Iterator[tuple[int, Image]]:
    """The needed images: octave k halved k times, and half octaves in between, the same pixels softened."""
    needed = set(half_octaves.tolist())
    level: Any = np.ascontiguousarray(image)  # else OpenCV copies it for every patch
    for octave in range(max(needed, default=-1) // 2 + 1):
        if octave:
            level = cv2.pyrDown(level, borderType=cv2.BORDER_REPLICATE)
        if 2 * octave in needed:
            yield 2 * octave, level
        if 2 * octave + 1 in needed:
            yield 2 * octave + 1, cv2.GaussianBlur(level, (5, 5), SOFTENING, borderType=cv2.BORDER_REPLICATE)


def _check_arguments(image: Image, patch_sigmas: float, side: int) -> None:
    if image.ndim != 2 or image.size == 0 or image.dtype not in (np.uint8, np.float32):
        raise KeypatchError(
            f"Patches are cut from a grey image (h, w) of uint8 or float32, not {image.dtype} of shape {image.shape}."
        )
    if not np.isfinite(image).all():
        raise KeypatchError("Patches cannot be cut from an image with values that are not finite.")
    if not (patch_sigmas > 0 and math.isfinite(patch_sigmas) and side >= 1):
        raise KeypatchError(f"patch_sigmas {patch_sigmas} and side {side} must be above 0.")

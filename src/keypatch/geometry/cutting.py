"""The one patch cutter."""

import math
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry.keypoints import Keypoints

# The blur that makes an image fit for steps of 1.41 to 2 pixels. Measured against patches integrated over every patch
# pixel (scikit-image's brick, grass, gravel, camera): without it the error reaches 22 % of the contrast at a step of 2,
# with it 8 %. Halved images, soft already, are softened alike: of three other ways none made a patch agree as well with
# the one cut at the same place of the photograph made smaller (1.3 to 3 times, on photographs of castle and entry).
SOFTENING = 0.65

STRIP = 64  # rows

_BILINEAR = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
_BORDER = cv2.BORDER_REPLICATE

Image = NDArray[np.uint8] | NDArray[np.float32]


class PatchCutter:
    """Cuts patches from one grey image (h, w), uint8 or float32 with values 0..255, in as many portions as one likes.

    The images of its pyramid are made when a patch first needs them and kept, at most 2.7 times the image's memory, so
    many keypoints can be cut a few thousand at a time: a patch does not depend on what is cut with it.
    """

    def __init__(self, image: Image) -> None:
        _check_image(image)
        self._levels: dict[int, Any] = {0: np.ascontiguousarray(image)}  # else OpenCV copies it for every patch

    def cut(self, keypoints: Keypoints, patch_sigmas: float = 24.0, side: int = 64) -> NDArray[np.uint8]:
        """The patches (n, side, side) around the keypoints.

        A patch is the square of patch_sigmas * sigma pixels a side, turned by the angle (and sheared by the shape). The
        keypoint lies at the patch's ((side - 1) / 2, (side - 1) / 2); half a side from it lie the patch's edges, not
        the centres of its outermost pixels. Beyond the image its border is repeated.
        """
        if not (0 < patch_sigmas < math.inf and side >= 1):
            raise KeypatchError(f"patch_sigmas {patch_sigmas} and side {side} must be above 0.")
        image = self._levels[0]
        pixels = np.empty((len(keypoints), side, side), image.dtype)
        steps = keypoints.frames() * (patch_sigmas / side)  # columns: one patch pixel right, one down, in image pixels
        half_octaves = _half_octaves(steps, max(image.shape))
        corners = keypoints.xy - steps @ np.full(2, (side - 1) / 2)  # where the patch's pixel (0, 0) lies
        # cv2.pyrDown keeps pixel 0 at 0, so a level only divides coordinates
        warps = np.concatenate([steps, corners[:, :, None]], axis=2) / 2.0 ** (half_octaves // 2)[:, None, None]
        # Level by level and strip by strip: what one patch has read is still in the processor's cache for the next.
        order = np.lexsort((keypoints.x, keypoints.y // STRIP, half_octaves))
        for i, half_octave in zip(order.tolist(), half_octaves[order].tolist(), strict=True):
            cv2.warpAffine(self._level(half_octave), warps[i], (side, side), pixels[i], _BILINEAR, _BORDER)
        if pixels.dtype == np.uint8:
            return pixels
        return np.clip(np.rint(pixels), 0, 255).astype(np.uint8)

    def _level(self, half_octave: int) -> Any:
        """Octave k is the image halved k times; the half octave after it has the same pixels, softened."""
        if half_octave not in self._levels:
            if half_octave % 2:
                level = cv2.GaussianBlur(self._level(half_octave - 1), (5, 5), SOFTENING, borderType=_BORDER)
            else:
                level = cv2.pyrDown(self._level(half_octave - 2), borderType=_BORDER)
            self._levels[half_octave] = level
        return self._levels[half_octave]


def cut_patches(image: Image, keypoints: Keypoints, patch_sigmas: float = 24.0, side: int = 64) -> NDArray[np.uint8]:
    """The patches (n, side, side) around the keypoints of a grey image (h, w), as PatchCutter.cut describes them."""
    return PatchCutter(image).cut(keypoints, patch_sigmas, side)


def _half_octaves(steps: NDArray[np.float64], image_side: int) -> NDArray[np.int64]:
    """Which image of the pyramid suits each patch: floor(2 log2 of the pixels between samples), at least 0.

    A bilinear sample sees two pixels across, so sampling every 1 to 1.41 pixels does little harm, and the image is the
    one where the step is that; a coarser one, as rounding log2 to octaves would choose, loses up to a quarter of the
    contrast of fine texture. The larger stretch of a sheared frame decides: rather a little softer in one direction
    than aliased in the other.
    """
    (a, b), (c, d) = steps.transpose(1, 2, 0)
    stretch = (np.hypot(a + d, c - b) + np.hypot(a - d, b + c)) / 2  # the larger singular value
    coarsest = 2 * int(math.log2(image_side)) + 1
    return np.asarray(np.clip(np.floor(2 * np.log2(stretch)), 0, coarsest), np.int64)


def _check_image(image: Image) -> None:
    if image.ndim != 2 or image.size == 0 or image.dtype not in (np.uint8, np.float32):
        raise KeypatchError(
            f"Patches need a grey image (h, w) of uint8 or float32, not {image.dtype} of shape {image.shape}."
        )
    if image.dtype != np.uint8 and not np.isfinite(image).all():
        raise KeypatchError("Patches cannot be cut from an image with values that are not finite.")

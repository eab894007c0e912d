"""SIFT and RootSIFT of a patch, through OpenCV."""

from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.describers.protocol import check_patches

GRID_SIGMAS = 12.0  # a SIFT bin is 3 sigma wide and the grid has four
# OpenCV's 4x4 grid spans 6 keypoint sizes, so side / 6 fits it to the patch. Written with two decimals, as the scores
# this package is compared with were computed: exactly 64 / 6 moves a few of them by one pair.
SIZE_PER_PIXEL = 10.67 / 64
OPENCV_LENGTH = 512.0  # OpenCV scales a descriptor to this length before rounding to 8 bits


@dataclass(frozen=True)
class SiftDescriber:
    """SIFT with the keypoint at the patch's centre, angle 0 and the 4x4 grid spanning 12 sigma: by default the patch.

    A wider patch shows what OpenCV sees in a photograph: it interpolates between cells, so its window goes beyond them.
    Plain SIFT is OpenCV's 8-bit vector over 512: its length is 1 only up to that rounding, and 0 for a flat patch.
    RootSIFT (Arandjelovic and Zisserman 2012) is the square root of the vector over its sum: unit length, or 0.
    """

    root: bool = False
    patch_size: int = 64
    patch_sigmas: float = GRID_SIGMAS

    dim = 128

    @property
    def name(self) -> str:
        return "rootsift" if self.root else "sift"

    @property
    def unit_length(self) -> bool:
        return self.root

    def describe(self, patches: NDArray[np.uint8]) -> NDArray[np.float32]:
        check_patches(patches)
        descriptors = np.empty((len(patches), self.dim), dtype=np.float32)
        sift = cv2.SIFT.create()
        side = patches.shape[1]
        size = SIZE_PER_PIXEL * side * (GRID_SIGMAS / self.patch_sigmas)
        keypoint = cv2.KeyPoint((side - 1) / 2, (side - 1) / 2, size, 0)
        for row, patch in zip(descriptors, patches, strict=True):
            row[:] = sift.compute(patch, [keypoint])[1][0]
        if not self.root:
            return descriptors / np.float32(OPENCV_LENGTH)
        sums = descriptors.sum(axis=1, keepdims=True)  # whole numbers, 0 if flat
        return np.asarray(np.sqrt(descriptors / np.maximum(sums, 1)))

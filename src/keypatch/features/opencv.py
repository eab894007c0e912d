"""A stand-in for cv2.SIFT: OpenCV's methods, a keypatch descriptor."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.describers.protocol import Describer
from keypatch.detection import Detector, Rule, make_detector
from keypatch.errors import KeypatchError
from keypatch.features.extraction import DESCRIPTOR, Extraction, describe_keypoints, detect
from keypatch.geometry import Keypoints, from_opencv, to_opencv
from keypatch.zoo import load

Image = NDArray[np.uint8]
Described = tuple[tuple[cv2.KeyPoint, ...], NDArray[np.float32] | None]

_TO_GREY = {3: cv2.COLOR_BGR2GRAY, 4: cv2.COLOR_BGRA2GRAY}


class Feature2D:
    """Detects and describes with the methods of cv2.SIFT: the same arguments, the same kinds of results.

    Images are uint8, grey or BGR. Keypoints come as a tuple of cv2.KeyPoint and descriptors as float32 (n, dim), or
    None where there are no keypoints. Descriptors are compared by cv2.NORM_L2. `upright` takes every angle for 0, also
    those of keypoints given to `compute`.
    """

    def __init__(
        self,
        descriptor: str | Path | Describer = DESCRIPTOR,
        keypoints: int | None = 2048,
        *,
        detector: str | Detector = "dog",
        rule: Rule = Extraction.rule,
        upright: bool = False,
        device: str = "auto",
    ) -> None:
        self.describer = load(descriptor, device) if isinstance(descriptor, str | Path) else descriptor
        found_by = make_detector(detector) if isinstance(detector, str) else detector
        self.extraction = Extraction(found_by, keypoints, rule, upright=upright)

    def detectAndCompute(
        self,
        image: Image,
        mask: Image | None = None,
        descriptors: object = None,
        useProvidedKeypoints: bool = False,
    ) -> Described:
        """Keypoints and their descriptors; only where the mask, if there is one, is not 0.

        `descriptors`, OpenCV's place for its result, is taken for the sake of the order and not filled.
        """
        if useProvidedKeypoints:
            raise KeypatchError(
                "useProvidedKeypoints is not supported: detectAndCompute takes no keypoints in Python. Call "
                "compute(image, keypoints) instead."
            )
        grey = _grey(image)
        found = self._detect(grey, mask)
        return tuple(to_opencv(found.without_shape())), self._describe(grey, found)

    def detect(self, image: Image, mask: Image | None = None) -> tuple[cv2.KeyPoint, ...]:
        """The keypoints alone, those of `detectAndCompute`."""
        return tuple(to_opencv(self._detect(_grey(image), mask).without_shape()))

    def compute(self, image: Image, keypoints: Sequence[cv2.KeyPoint], descriptors: object = None) -> Described:
        """Descriptors of the keypoints given: all of them, in their order; the same keypoints come back."""
        given = from_opencv(keypoints, upright=self.extraction.upright)
        return tuple(keypoints), self._describe(_grey(image), given)

    def descriptorSize(self) -> int:
        return self.describer.dim

    def descriptorType(self) -> int:
        return int(cv2.CV_32F)

    def defaultNorm(self) -> int:
        return int(cv2.NORM_L2)

    def getDefaultName(self) -> str:
        """As OpenCV names its own: "Feature2D.SIFT"."""
        return f"Feature2D.{self.describer.name}"

    def empty(self) -> bool:
        """Always, as for cv2.SIFT: there is nothing to train."""
        return True

    def _detect(self, grey: Image, mask: Image | None) -> Keypoints:
        if mask is None:
            return detect(grey, self.extraction)
        if np.shape(mask) != grey.shape:
            raise KeypatchError(
                f"The mask has shape {np.shape(mask)}, but the image has {grey.shape}. They must be the same."
            )
        masked = _Masked(self.extraction.detector, np.asarray(mask) != 0)
        return detect(grey, replace(self.extraction, detector=masked))

    def _describe(self, grey: Image, keypoints: Keypoints) -> NDArray[np.float32] | None:
        return describe_keypoints(grey, keypoints, self.describer) if len(keypoints) else None


@dataclass(frozen=True)
class _Masked:
    """A detector that sees only a part of the image, so that the budget is spent there."""

    detector: Detector
    mask: NDArray[np.bool_]

    @property
    def name(self) -> str:
        return self.detector.name

    def __call__(self, image: Image) -> Keypoints:
        found = self.detector(image)
        height, width = self.mask.shape
        column = np.clip(np.rint(found.x).astype(np.int64), 0, width - 1)
        row = np.clip(np.rint(found.y).astype(np.int64), 0, height - 1)
        return found.take(self.mask[row, column])


def _grey(image: Image) -> Image:
    if image is None:
        raise KeypatchError("The image is None: cv2.imread returns None if the file is missing or not an image.")
    channels = image.shape[2] if image.ndim == 3 else 1
    if image.ndim not in (2, 3) or image.dtype != np.uint8 or channels not in (1, 3, 4):
        raise KeypatchError(
            f"The image must be uint8, grey (h, w) or BGR (h, w, 3), not {image.dtype} of shape {image.shape}."
        )
    grey = cv2.cvtColor(image, _TO_GREY[channels]) if channels > 1 else image.reshape(image.shape[:2])
    return np.asarray(grey, np.uint8)

"""Difference-of-Gaussians interest points through OpenCV."""

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.detection.orientations import Orientations, keep_orientations
from keypatch.detection.protocol import require_grey
from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints, from_opencv


@dataclass(frozen=True)
class Dog:
    """OpenCV's SIFT detector without its quarter-pixel bias: the default for photographs.

    A point with several dominant directions comes back once for each ("all"), with only the first of them ("one"), or
    once with angle 0 ("upright").
    """

    name: ClassVar[str] = "dog"

    contrast_threshold: float = 0.0067  # a sixth of OpenCV's: the budget, not the threshold, is to choose
    orientations: Orientations = "all"

    def __call__(self, image: NDArray[np.uint8]) -> Keypoints:
        return detect_dog(image, None, self.contrast_threshold, self.orientations)


def detect_dog(
    image: NDArray[np.uint8],
    limit: int | None = None,
    contrast_threshold: float = 0.04,
    orientations: Orientations = "all",
) -> Keypoints:
    """DoG points of a grey image (h, w), the strongest first, at most `limit`; orientations as in `Dog`."""
    require_grey(image, "DoG")
    if limit is not None and limit < 0:
        raise KeypatchError(f"At most {limit} keypoints were asked for; the limit cannot be below 0.")
    # Without the precise upscale every point lies 0.25 px too far right and down.
    sift = cv2.SIFT.create(contrastThreshold=contrast_threshold, enable_precise_upscale=True)
    found = from_opencv(sorted(sift.detect(image, None), key=lambda keypoint: -keypoint.response))
    kept = keep_orientations(found, orientations)
    return kept.take(np.arange(len(kept))[:limit])

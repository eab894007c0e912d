"""Difference-of-Gaussians interest points through OpenCV."""

from dataclasses import replace
from typing import Literal

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints


def detect_dog(
    image: NDArray[np.uint8],
    limit: int | None = None,
    contrast_threshold: float = 0.04,
    orientations: Literal["all", "one", "upright"] = "all",
) -> Keypoints:
    """DoG points of a grey image (h, w), the strongest first, at most `limit`.

    A point with several dominant directions comes back once for each ("all"), with only the first of them ("one"), or
    once with angle 0 ("upright").
    """
    if image.ndim != 2 or image.dtype != np.uint8:
        raise KeypatchError(f"DoG needs a grey image (h, w) of uint8, not {image.dtype} of shape {image.shape}.")
    if limit is not None and limit < 0:
        raise KeypatchError(f"At most {limit} keypoints were asked for; the limit cannot be below 0.")
    # Without the precise upscale every point lies 0.25 px too far right and down.
    sift = cv2.SIFT.create(contrastThreshold=contrast_threshold, enable_precise_upscale=True)
    found = Keypoints.from_cv2(sorted(sift.detect(image, None), key=lambda keypoint: -keypoint.response))
    if orientations != "all":
        places = np.stack([found.x, found.y, found.sigma], axis=1)
        found = found.take(np.sort(np.unique(places, axis=0, return_index=True)[1]))
    if orientations == "upright":
        found = replace(found, angle=np.zeros_like(found.angle))
    return found.take(np.arange(len(found))[:limit])

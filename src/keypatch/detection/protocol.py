"""What a detector is: a grey photograph in, Keypoints out."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints


class Detector(Protocol):
    """A frozen dataclass whose fields are its settings."""

    @property
    def name(self) -> str: ...

    def __call__(self, image: NDArray[np.uint8]) -> Keypoints:
        """All it finds in a grey image (h, w) of uint8, with responses, the strongest first; the same in every run."""
        ...


def require_grey(image: NDArray[np.uint8], detector: str) -> None:
    """KeypatchError unless the image is (h, w) of uint8."""
    if image.ndim != 2 or image.dtype != np.uint8:
        raise KeypatchError(f"{detector} needs a grey image (h, w) of uint8, not {image.dtype} of shape {image.shape}.")
    if image.size == 0:
        raise KeypatchError(f"{detector} needs an image with at least one pixel, not one of shape {image.shape}.")


def no_keypoints() -> Keypoints:
    """What a detector finds where there is nothing, or no room for it."""
    nothing = np.zeros(0, np.float32)
    return Keypoints(nothing, nothing, nothing, nothing, response=nothing)

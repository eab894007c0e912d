"""What a detector is, and what detectors share: how many directions a place keeps."""

from dataclasses import replace
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints

Orientations = Literal["all", "one", "upright"]

SAME_SIGMA = 1e-5  # relative; COLMAP's scale comes out of a matrix and differs in the last bits between two directions


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
        raise KeypatchError(f"{detector} needs an image with at least one pixel, not of shape {image.shape}.")


def no_keypoints() -> Keypoints:
    """What a detector finds where there is nothing, or no room for it."""
    nothing = np.zeros(0, np.float32)
    return Keypoints(nothing, nothing, nothing, nothing, response=nothing)


def keep_orientations(keypoints: Keypoints, orientations: Orientations) -> Keypoints:
    """Every direction of a place ("all"), the first of them ("one"), or the place once with angle 0 ("upright").

    A place is one x, y and sigma. Upright copies of it would be equal features, of which mutual matching finds none.
    """
    if orientations == "all" or len(keypoints) == 0:
        return keypoints
    order = np.lexsort([keypoints.sigma, keypoints.y, keypoints.x])  # stable: of one place the first stays first
    x, y, sigma = (column[order] for column in (keypoints.x, keypoints.y, keypoints.sigma))
    new = (np.diff(x) != 0) | (np.diff(y) != 0) | (np.diff(sigma) > SAME_SIGMA * sigma[1:])
    first = np.minimum.reduceat(order, np.flatnonzero(np.concatenate([[True], new])))
    kept = keypoints.take(np.sort(first))
    return replace(kept, angle=np.zeros_like(kept.angle)) if orientations == "upright" else kept

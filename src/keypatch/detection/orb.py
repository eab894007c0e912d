"""ORB's corners (oriented FAST on a pyramid), through OpenCV."""

from dataclasses import dataclass
from typing import ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.detection.protocol import no_keypoints, require_grey
from keypatch.geometry import Keypoints

PATCH = 31  # pixels of a pyramid level: what ORB's descriptor covers, and OpenCV calls the size
PATCH_SIGMAS = 12  # what SIFT's descriptor covers, in sigmas
BORDER = 31  # pixels of a level in which no corner is looked for
LEVEL_FACTOR = 1.2


@dataclass(frozen=True)
class Orb:
    """Corners of eight levels, each 1.2 times as coarse; the response is Harris', the angle points to the bright side.

    A corner has no scale of its own beside its level's. Its sigma is chosen so that ORB's own patch is as many sigmas
    wide as SIFT's: 31/12 pixels of the level.
    """

    name: ClassVar[str] = "orb"

    fast_threshold: int = 20

    def __call__(self, image: NDArray[np.uint8]) -> Keypoints:
        require_grey(image, "ORB")
        if min(image.shape) <= 2 * BORDER:  # OpenCV raises where a level would have no pixel
            return no_keypoints()
        orb = cv2.ORB.create(  # image.size: no limit
            nfeatures=image.size,
            scaleFactor=LEVEL_FACTOR,
            edgeThreshold=BORDER,
            patchSize=PATCH,
            fastThreshold=self.fast_threshold,
        )
        found = sorted(orb.detect(image, None), key=lambda keypoint: -keypoint.response)
        rows = np.array([(*k.pt, k.octave, k.angle, k.response) for k in found], np.float64).reshape(-1, 5)
        x, y, level, degrees, response = rows.T
        height, width = image.shape
        nominal = LEVEL_FACTOR**level
        # OpenCV only multiplies the level's pixels by 1.2^level: up to 3 px beside where they lie in the photograph.
        return Keypoints(
            _in_photo(x / nominal, width, nominal),
            _in_photo(y / nominal, height, nominal),
            (PATCH / PATCH_SIGMAS * nominal).astype(np.float32),
            np.radians(degrees).astype(np.float32),
            response=response.astype(np.float32),
        )


def _in_photo(pixel: NDArray[np.float64], side: int, nominal: NDArray[np.float64]) -> NDArray[np.float32]:
    """Centres of a level's pixels along one axis, in pixels of the photograph: the level has rounded its side."""
    factor = side / np.rint(side / nominal)
    return ((pixel + 0.5) * factor - 0.5).astype(np.float32)

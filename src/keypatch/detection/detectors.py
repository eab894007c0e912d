"""The detectors that need no extra package, and the table of all detectors by name."""

from dataclasses import dataclass
from typing import Any, ClassVar

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.detection.colmap import ColmapSift
from keypatch.detection.detector import Detector, Orientations, keep_orientations, no_keypoints, require_grey
from keypatch.detection.keynet import KeyNet
from keypatch.geometry import Keypoints, from_opencv
from keypatch.parts import table
from keypatch.settings import CheckedFields, Types, checked, option

PATCH = 31  # pixels of a pyramid level: what ORB's descriptor covers, and OpenCV calls the size
PATCH_SIGMAS = 12  # what SIFT's descriptor covers, in sigmas
BORDER = 31  # pixels of a level in which no corner is looked for
LEVEL_FACTOR = 1.2


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
    # Without the precise upscale every point lies 0.25 px too far right and down.
    sift = cv2.SIFT.create(contrastThreshold=contrast_threshold, enable_precise_upscale=True)
    found = from_opencv(sorted(sift.detect(image, None), key=lambda keypoint: -keypoint.response))
    kept = keep_orientations(found, orientations)
    return kept.take(np.arange(len(kept))[:limit])


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


@dataclass(frozen=True)
class Grid(CheckedFields):
    """Upright keypoints every `step` pixels, centred in the photograph, all with the same sigma and response.

    They come coarse to fine, so that any budget, which keeps the first of equals, covers the whole photograph.
    """

    name: ClassVar[str] = "grid"

    step: float = option(16.0, least=1)
    sigma: float = option(2.0, above=0)

    def __call__(self, image: NDArray[np.uint8]) -> Keypoints:
        require_grey(image, "The grid")
        rows, columns = (int((side - 1) // self.step) + 1 for side in image.shape)
        row, column = np.divmod(np.arange(rows * columns), columns)
        order = np.argsort(_coarse_to_fine(row, column))
        margin_y, margin_x = ((side - 1) % self.step / 2 for side in image.shape)
        x, y = margin_x + self.step * column[order], margin_y + self.step * row[order]
        ones = np.ones(len(order), np.float32)
        return Keypoints(x.astype(np.float32), y.astype(np.float32), self.sigma * ones, 0 * ones, response=ones)


def _coarse_to_fine(row: NDArray[np.int64], column: NDArray[np.int64]) -> NDArray[np.int64]:
    """A rank for each place of a grid: a place between four others comes after them, opposite corners first."""
    rank = np.zeros_like(row)
    for bit in range(int(max(row.max(), column.max())).bit_length()):
        down, right = row >> bit & 1, column >> bit & 1
        rank = rank << 2 | (down ^ right) << 1 | down
    return rank


DETECTORS: dict[str, type[Any]] = table("detector", {kind.name: kind for kind in (Dog, ColmapSift, Orb, KeyNet, Grid)})
DETECTOR_TYPES: Types = {Detector: DETECTORS}  # what settings may name


def make_detector(name: str, **values: Any) -> Detector:
    """The detector of that name with these fields; the others take their defaults."""
    detector: Detector = checked({"type": name, **values}, Detector, "detector", DETECTOR_TYPES)
    return detector

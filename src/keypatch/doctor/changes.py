"""Known changes of a photograph: turned, rescaled, shifted, each with the homography from old pixels to new."""

import math

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry.homographies import Matrix

Image = NDArray[np.uint8]

CAMERA_BLUR = 0.5  # the sigma a photograph is taken to have (Lowe 2004); a smaller copy should have it too


def turn(image: Image, degrees: float) -> tuple[Image, Matrix]:
    """The photograph turned clockwise on screen, on a canvas that holds all of it; around it the border is repeated."""
    _check(image)
    height, width = image.shape
    angle = math.radians(degrees)
    # quarter turns are exact: only whole pixels move
    cos, sin = (round(value, 12) for value in (math.cos(angle), math.sin(angle)))
    size = math.ceil(abs(cos) * width + abs(sin) * height), math.ceil(abs(sin) * width + abs(cos) * height)
    homography = np.array([[cos, -sin, 0.0], [sin, cos, 0.0], [0.0, 0.0, 1.0]])
    old_centre, new_centre = np.array([width - 1, height - 1]) / 2, np.array([size[0] - 1, size[1] - 1]) / 2
    homography[:2, 2] = new_centre - homography[:2, :2] @ old_centre
    return _warp(image, homography, size), homography


def rescale(image: Image, factor: float) -> tuple[Image, Matrix]:
    """The photograph `factor` times as large; blurred before it shrinks, so that nothing aliases."""
    _check(image)
    if not (factor > 0 and math.isfinite(factor)):
        raise KeypatchError(f"A photograph cannot be made {factor} times as large; the factor must be above 0.")
    height, width = image.shape
    if factor < 1:
        blur = CAMERA_BLUR * math.sqrt(factor**-2 - 1)
        image = np.asarray(cv2.GaussianBlur(image, (0, 0), blur, borderType=cv2.BORDER_REPLICATE), np.uint8)
    homography = np.diag([factor, factor, 1.0])
    homography[:2, 2] = (factor - 1) / 2  # the outer corner of the first pixel, (-0.5, -0.5), stays where it is
    return _warp(image, homography, (max(1, round(factor * width)), max(1, round(factor * height)))), homography


def shift(image: Image, x: float, y: float) -> tuple[Image, Matrix]:
    """The photograph moved right by x and down by y pixels, on a canvas of the same size."""
    _check(image)
    homography = np.eye(3)
    homography[:2, 2] = x, y
    return _warp(image, homography, (image.shape[1], image.shape[0])), homography


def _warp(image: Image, homography: Matrix, size: tuple[int, int]) -> Image:
    return np.asarray(
        cv2.warpAffine(image, homography[:2], size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE), np.uint8
    )


def _check(image: Image) -> None:
    if image.ndim != 2 or image.size == 0 or image.dtype != np.uint8:
        raise KeypatchError(f"A grey image (h, w) of uint8 is changed, not {image.dtype} of shape {image.shape}.")

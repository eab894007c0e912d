"""Known changes of a photograph, and where they move its keypoints.

A change comes with the homography from old pixels to new.
"""

import math
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.doctor.stated import Image
from keypatch.geometry import Keypoints, apply_homography, transform_keypoints
from keypatch.geometry.homographies import Matrix

CAMERA_BLUR = 0.5  # the sigma a photograph is taken to have (Lowe 2004); a smaller copy should have it too
ROWS = 1024  # keypoints compared at once with all of the other photograph: 65 MB with 8,000 of them


def turn(image: Image, degrees: float) -> tuple[Image, Matrix]:
    """The photograph turned clockwise on screen, on a canvas that holds all of it; around it the border is repeated."""
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
    height, width = image.shape
    if factor < 1:
        blur = CAMERA_BLUR * math.sqrt(factor**-2 - 1)
        image = np.asarray(cv2.GaussianBlur(image, (0, 0), blur, borderType=cv2.BORDER_REPLICATE), np.uint8)
    homography = np.diag([factor, factor, 1.0])
    homography[:2, 2] = (factor - 1) / 2  # the outer corner of the first pixel, (-0.5, -0.5), stays where it is
    return _warp(image, homography, (max(1, round(factor * width)), max(1, round(factor * height)))), homography


def shift(image: Image, x: float, y: float) -> tuple[Image, Matrix]:
    """The photograph moved right by x and down by y pixels, on a canvas of the same size."""
    homography = np.eye(3)
    homography[:2, 2] = x, y
    return _warp(image, homography, (image.shape[1], image.shape[0])), homography


def _warp(image: Image, homography: Matrix, size: tuple[int, int]) -> Image:
    return np.asarray(
        cv2.warpAffine(image, homography[:2], size, flags=cv2.INTER_CUBIC, borderMode=cv2.BORDER_REPLICATE), np.uint8
    )


@dataclass(frozen=True)
class SameFrame:
    """How far two frames may differ and still count as the same; the place in pixels of the changed photograph."""

    pixels: float = 3.0
    octaves: float = 0.25
    degrees: float = 15.0


@dataclass(frozen=True)
class Count:
    """How many of a photograph's keypoints were found again and matched in a changed one."""

    keypoints: int  # in the photograph
    found_again: int  # those of them for which the changed photograph has the same frame
    matched: int  # those found again that are matched with the same frame
    matches: int  # all matches given
    right: int  # matches whose places fit, whatever their frames

    @property
    def share(self) -> float:
        """matched / found_again; nan if nothing was found again."""
        return self.matched / self.found_again if self.found_again else float("nan")


def count(
    first: Keypoints,
    second: Keypoints,
    homography: ArrayLike,
    matches: ArrayLike,
    same: SameFrame = SameFrame(),  # noqa: B008  a frozen value
) -> Count:
    """Judge the matches (m, 2), indices into the keypoints of the photograph and of the changed one."""
    pairs = np.asarray(matches, np.int64).reshape(-1, 2)
    again = {tuple(pair) for pair in same_frames(first, second, homography, same).tolist()}
    apart = apply_homography(homography, first.xy[pairs[:, 0]]) - second.xy[pairs[:, 1]]
    return Count(
        keypoints=len(first),
        found_again=len({one for one, _ in again}),
        matched=len({one for one, other in pairs.tolist() if (one, other) in again}),
        matches=len(pairs),
        right=int(np.sum(np.hypot(*apart.T) <= same.pixels)),
    )


def same_frames(
    first: Keypoints,
    second: Keypoints,
    homography: ArrayLike,
    same: SameFrame = SameFrame(),  # noqa: B008  a frozen value
) -> NDArray[np.int64]:
    """All pairs (m, 2) of keypoints whose frames are the same once the homography has carried the first ones over."""
    carried = transform_keypoints(homography, first)
    pairs = [np.empty((0, 2), np.int64)]
    for start in range(0, len(carried), ROWS):
        rows = slice(start, start + ROWS)
        near = np.hypot(carried.x[rows, None] - second.x, carried.y[rows, None] - second.y) <= same.pixels
        one, other = np.nonzero(near)
        pairs.append(np.stack([one + start, other], axis=1))
    found = np.concatenate(pairs)
    octaves = np.log2(carried.sigma[found[:, 0]] / second.sigma[found[:, 1]])
    turns = np.degrees(carried.angle[found[:, 0]] - second.angle[found[:, 1]]).astype(np.float64)
    turned = np.abs((turns + 180) % 360 - 180)
    return np.asarray(found[(np.abs(octaves) <= same.octaves) & (turned <= same.degrees)])

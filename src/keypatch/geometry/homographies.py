"""Homographies: points and keypoints carried from one photograph into another, and random views of a photograph."""

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.files import read_text, reading
from keypatch.geometry.keypoints import Keypoints, rotations

Matrix = NDArray[np.float64]


def apply_homography(homography: ArrayLike, xy: ArrayLike) -> NDArray[np.float64]:
    """The points xy (n, 2) carried over by a 3x3 matrix; a point on its horizon raises KeypatchError."""
    h, points = _matrix(homography), np.asarray(xy, np.float64).reshape(-1, 2)
    carried = points @ h[:, :2].T + h[:, 2]  # (n, 3)
    return carried[:, :2] / _depth(carried)[:, None]


def transform_keypoints(homography: ArrayLike, keypoints: Keypoints) -> Keypoints:
    """The keypoints in the other photograph: places carried over, frames multiplied by the derivative there."""
    h, points = _matrix(homography), keypoints.xy
    carried = points @ h[:, :2].T + h[:, 2]
    depth = _depth(carried)[:, None]
    places = carried[:, :2] / depth
    # d(u / w) = (du - (u / w) dw) / w
    derivative = (h[None, :2, :2] - places[:, :, None] * h[None, 2:, :2]) / depth[:, :, None]
    return Keypoints.from_frames(places, derivative @ keypoints.frames(), keypoints.response)


@dataclass(frozen=True)
class ViewRange:
    """How far random views differ from the photograph; drawn uniformly, zoom and stretch in the logarithm."""

    turn: float = math.pi / 4  # radians, either way
    zoom: tuple[float, float] = (0.7, 1.4)
    stretch: float = 1.4  # ratio of the axes: a plane seen at 45 degrees is shortened by 1.41
    perspective: float = 0.2  # change of depth from the centre to a corner


@dataclass(frozen=True)
class View:
    """Another view of a photograph, large enough to hold all of it."""

    homography: Matrix  # from the photograph's pixels to the view's
    size: tuple[int, int]  # (width, height)


def random_homography(rng: np.random.Generator, size: tuple[int, int], ranges: ViewRange) -> View:
    """A random view of a photograph of this size (width, height)."""
    width, height = size
    centre = _translation(-(width - 1) / 2, -(height - 1) / 2)
    turn, stretch_direction, tilt_direction = rng.uniform(-ranges.turn, ranges.turn), *rng.uniform(0, 2 * math.pi, 2)
    zoom = math.exp(rng.uniform(*np.log(ranges.zoom)))
    stretch = math.exp(rng.uniform(0, math.log(ranges.stretch)) / 2)
    tilt = rng.uniform(0, ranges.perspective) * 2 / math.hypot(width, height)
    affine, perspective = np.eye(3), np.eye(3)
    squeeze = rotations(stretch_direction) @ np.diag([stretch, 1 / stretch]) @ rotations(-stretch_direction)
    affine[:2, :2] = zoom * squeeze @ rotations(turn)
    perspective[2, :2] = tilt * math.cos(tilt_direction), tilt * math.sin(tilt_direction)
    homography = affine @ perspective @ centre
    edges = np.array([[-0.5, -0.5], [width - 0.5, -0.5], [width - 0.5, height - 0.5], [-0.5, height - 0.5]])
    corners = apply_homography(homography, edges)
    low, extent = corners.min(axis=0), np.ptp(corners, axis=0)
    shifted = _translation(*(-0.5 - low)) @ homography  # the leftmost and the topmost edge come to -0.5
    return View(shifted, (math.ceil(extent[0]), math.ceil(extent[1])))


def read_matrix(path: Path) -> Matrix:
    """A 3x3 matrix as plain text, row by row: a homography, or the intrinsics K of a camera.

    Raises:
        DataError: the file is missing or is no such matrix, or a singular one, which is neither of the two.
    """
    with reading(path, "matrix of nine numbers in plain text"):
        values = np.array(read_text(path).replace(",", " ").split(), np.float64)
    if values.shape != (9,) or not np.isfinite(values).all():
        raise DataError(f"{path} has {len(values)} numbers; expected a 3x3 matrix of finite numbers.")
    matrix = values.reshape(3, 3)
    if np.linalg.matrix_rank(matrix) < 3:
        raise DataError(
            f"{path} holds a singular matrix, which is neither a homography nor a camera. Write the file again."
        )
    return matrix


def _translation(x: float, y: float) -> Matrix:
    return np.array([[1.0, 0.0, x], [0.0, 1.0, y], [0.0, 0.0, 1.0]])


def _matrix(homography: ArrayLike) -> Matrix:
    h = np.asarray(homography, np.float64)
    if h.shape != (3, 3) or not np.isfinite(h).all():
        raise KeypatchError(f"A homography must be a finite 3x3 matrix; found shape {h.shape}.")
    return h


def _depth(carried: NDArray[np.float64]) -> NDArray[np.float64]:
    depth = carried[:, 2]
    if np.any(np.abs(depth) <= 1e-12 * np.abs(carried).max(initial=0)) or not np.isfinite(carried).all():
        raise KeypatchError("A point lies on the homography's horizon or is not finite. Leave it out.")
    return depth

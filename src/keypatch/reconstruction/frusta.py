"""Cameras as pyramids in space: the eye and the corners of the photo before it."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from keypatch.reconstruction.cameras import PosedCamera

FACE = (1, 2, 3, 4)  # corners of the photo: top left, top right, bottom right, bottom left; 0 is the eye
EDGES = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 1))


def frusta(cameras: Sequence[PosedCamera], xyz: NDArray[np.float64]) -> NDArray[np.float64]:
    """(n, 5, 3) the five corners of each camera's pyramid in the world, all of one size that suits the scene (m, 3)."""
    depth = _depth(np.array([camera.pose.centre for camera in cameras]), xyz)
    return np.array([_frustum(camera, depth) for camera in cameras])


def _frustum(posed: PosedCamera, size: float) -> NDArray[np.float64]:
    camera, pose = posed
    (f_x, f_y), side = camera.focal, max(camera.width, camera.height)
    half = np.array([camera.width, camera.height]) / side * size / 2  # the longer side of the photo is `size`
    depth = size * min((f_x + f_y) / 2 / side, 1.2)
    corners = [(0, 0, 0), *((x * half[0], y * half[1], depth) for x, y in ((-1, -1), (1, -1), (1, 1), (-1, 1)))]
    return np.asarray(np.array(corners) @ pose.rotation + pose.centre)


def _depth(centres: NDArray[np.float64], xyz: NDArray[np.float64]) -> float:
    """Small beside the scene, not so large that neighbours hide each other, and seen where they stand far around it."""
    if not len(xyz):
        return 0.25
    middle = np.median(xyz, axis=0)
    scene, away = (float(np.median(np.linalg.norm(places - middle, axis=1))) for places in (xyz, centres))
    if len(centres) < 2:
        return 0.25 * scene
    apart = np.linalg.norm(centres[:, None] - centres[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(np.clip(0.7 * np.median(apart.min(axis=1)), 0.08 * scene, max(0.25 * scene, 0.09 * away)))

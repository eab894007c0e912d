"""Strecha's `.camera` files: one per photo, beside the photos of his multi-view benchmark."""

from pathlib import Path

import numpy as np

from keypatch.errors import DataError
from keypatch.files import reason
from keypatch.geometry.poses import Pose
from keypatch.reconstruction.camera_models import Camera

SUFFIX = ".camera"
LAYOUT = (9, 3, 9, 3, 2)  # K, distortion, R, C, size


def read_strecha(path: Path) -> tuple[Camera, Pose]:
    """The camera of one file: K in our pixels; R turns from camera to world and C is the centre, in the world's unit.

    Raises:
        DataError: the file has other numbers than these, a distorted camera, or an R that is no rotation.
    """
    try:
        numbers = np.array(path.read_text(encoding="utf-8").split(), np.float64)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}.") from None
    except ValueError as error:
        raise DataError(f"{path} is not a file of Strecha's cameras ({error}).") from None
    if len(numbers) != sum(LAYOUT) or not np.isfinite(numbers).all():
        raise DataError(
            f"{path} should hold {sum(LAYOUT)} finite numbers (K, 0 0 0, R, C, size), found {len(numbers)}."
        )
    k, distortion, r, centre, size = np.split(numbers, np.cumsum(LAYOUT)[:-1])
    if distortion.any():
        raise DataError(f"{path} has lens distortion {distortion}; only undistorted photos are understood.")
    turn = r.reshape(3, 3)
    if np.abs(turn @ turn.T - np.eye(3)).max() > 1e-3 or np.linalg.det(turn) < 0:
        raise DataError(f"{path}: the numbers 13 to 21 are no rotation matrix.")
    width, height = (int(side) for side in size)
    return Camera.from_matrix(k.reshape(3, 3), (width, height)), Pose(turn.T, -turn.T @ centre)

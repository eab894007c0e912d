"""Which matches are right, where the true homography of two photographs is known."""

from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.files import reason


def transfer_errors(homography: ArrayLike, first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Distances in pixels (m,) from points (m, 2) of the second photo to where x1 ~ H x0 puts those of the first.

    Points that H sends to infinity have the error inf.
    """
    h, x0, x1 = np.asarray(homography, np.float64), np.asarray(first, np.float64), np.asarray(second, np.float64)
    if h.shape != (3, 3) or not np.isfinite(h).all():
        raise KeypatchError(f"A homography is a finite 3x3 matrix, not one of the dimensions {h.shape}.")
    carried = x0 @ h[:, :2].T + h[:, 2]  # (m, 3)
    depth = np.where(carried[:, 2] == 0, np.nan, carried[:, 2])
    errors = np.linalg.norm(carried[:, :2] / depth[:, None] - x1, axis=1)
    return np.where(np.isfinite(errors), errors, np.inf)


def read_matrix(path: Path) -> NDArray[np.float64]:
    """A 3x3 matrix as plain text, row by row: a homography, or the intrinsics K of a camera.

    Raises:
        DataError: the file is missing or is no such matrix, or a singular one, which is neither of the two.
    """
    try:
        words = path.read_text(encoding="utf-8").replace(",", " ").split()
        values = np.array([float(word) for word in words])
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}.") from error
    except ValueError:
        raise DataError(f"{path} is not a matrix of nine numbers in plain text.") from None
    if values.shape != (9,) or not np.isfinite(values).all():
        raise DataError(
            f"{path} has {len(values)} numbers; a matrix of 3 rows with 3 finite numbers each was expected."
        )
    matrix = values.reshape(3, 3)
    if np.linalg.matrix_rank(matrix) < 3:
        raise DataError(f"{path} is a singular matrix, which no homography and no camera has. Write the file again.")
    return matrix

"""Reading what a feature file in hloc's layout, or a COLMAP database, states about a photograph."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.doctor.stated import Floats, Stated
from keypatch.errors import DataError
from keypatch.features.colmap_database import open_colmap_database
from keypatch.features.feature_files import FeatureReader, find_group, group_names, open_h5, read_array
from keypatch.geometry.converters import COLMAP_CORNER

SIFT_LENGTH = 512.0  # COLMAP's, in bytes


def read_stated_h5(path: Path, photo: str, name: str | None = None) -> Stated:
    """hloc's convention: OpenCV's pixels, sigma, degrees clockwise, descriptors of length 1 in columns."""
    length = _stated_length(path)
    with open_h5(path) as file:
        chosen = choose_name(path, group_names(file), photo, name)
        group = find_group(path, file, chosen)
        keypoints, scales, oris, descriptors = (
            read_array(path, group, key) for key in ("keypoints", "scales", "oris", "descriptors")
        )
    where = f"{path}, {chosen}"
    if keypoints is None or keypoints.ndim != 2 or keypoints.shape[1] < 2:
        raise DataError(f"{where}: the keypoints are not an array (n, 2). Write the file again.")
    xy = _finite(keypoints[:, :2], where)
    sigma, angle = (_column(array, len(xy), where) for array in (scales, oris))
    rows, transposed = _columns_of(descriptors, len(xy), where)
    return _checked(Stated(xy, sigma, angle, "degrees", rows, length, transposed), where)


def read_stated_database(path: Path, photo: str, name: str | None = None) -> Stated:
    """COLMAP's convention: pixels counted from the corner, sigma, radians clockwise, SIFT in bytes of length 512."""
    if not path.is_file():
        raise DataError(f"There is no database {path}.")
    with open_colmap_database(path) as database:
        chosen = choose_name(path, database.described_images(), photo, name)
        rows, descriptors = database.keypoints(chosen), database.descriptors(chosen)
    where = f"{path}, {chosen}"
    xy = _finite(rows[:, :2], where) - COLMAP_CORNER
    sigma, angle = _colmap_frames(_finite(rows[:, 2:], where), where)
    vectors, length = _colmap_descriptors(descriptors, len(xy), where)
    return _checked(Stated(xy, sigma, angle, "radians", vectors, length), where)


def choose_name(path: Path, names: list[str], photo: str, name: str | None) -> str:
    """The name asked for; else that of the photo's file, with or without folders before it; else the only one."""
    wanted = name or photo
    if wanted in names:
        return wanted
    likely = [] if name else [each for each in names if each.endswith(f"/{photo}")] or names
    if len(likely) == 1:
        return likely[0]
    if not names:
        raise DataError(f"{path} has keypoints of no photo. Describe some first.")
    some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    raise DataError(f'{path} has no keypoints of "{wanted}". Choose with --name among its {len(names)} photos: {some}.')


def _stated_length(path: Path) -> float | None:
    """1 in files of others; ours may hold a descriptor without unit length, and say whether they do."""
    with FeatureReader(path) as reader:
        return 1.0 if not reader.settings or reader.settings.get("unit_length") else None


def _colmap_frames(shapes: Floats, where: str) -> tuple[Floats | None, Floats | None]:
    columns = shapes.shape[1]
    if columns == 0:
        return None, None
    if columns == 2:
        return shapes[:, 0], shapes[:, 1]
    if columns != 4:
        raise DataError(f"{where}: COLMAP's keypoints have 2, 4 or 6 columns, not {columns + 2}. Write them again.")
    a11, a12, a21, a22 = shapes.T
    return np.sqrt(np.maximum(a11 * a22 - a12 * a21, 0)), np.arctan2(a21, a11)


def _colmap_descriptors(array: NDArray[np.generic] | None, n: int, where: str) -> tuple[Floats | None, float]:
    if array is None:
        return None, SIFT_LENGTH
    if len(array) != n:
        raise DataError(f"{where}: {n} keypoints but {len(array)} descriptors. Make the database again.")
    return np.asarray(array, np.float64), SIFT_LENGTH if array.dtype == np.uint8 else 1.0


def _columns_of(array: NDArray[np.generic] | None, n: int, where: str) -> tuple[Floats | None, bool]:
    """Descriptors one per row, and whether the file had them so."""
    if array is None:
        return None, False
    if array.ndim != 2 or n not in array.shape:
        raise DataError(f"{where}: {n} keypoints but descriptors of the shape {array.shape}. Write the file again.")
    transposed = array.shape[1] != n
    return _finite(array if transposed else array.T, where), transposed


def _column(array: NDArray[np.generic] | None, n: int, where: str) -> Floats | None:
    if array is None:
        return None
    if array.shape != (n,):
        raise DataError(f"{where}: scales or oris of the shape {array.shape} for {n} keypoints. Write the file again.")
    return _finite(array, where)


def _finite(array: NDArray[np.generic], where: str) -> Floats:
    values = np.asarray(array, np.float64)
    if not np.isfinite(values).all():
        first = int(np.argwhere(~np.isfinite(values))[0, 0])
        raise DataError(f"{where}: keypoint {first} has a value that is not finite. Leave such keypoints out.")
    return values


def _checked(stated: Stated, where: str) -> Stated:
    if stated.sigma is not None and len(stated) and stated.sigma.min() <= 0:
        first = int(np.argmin(stated.sigma))
        raise DataError(
            f"{where}: keypoint {first} has the scale {stated.sigma[first]:g}. Is it padding? Leave it out."
        )
    return stated

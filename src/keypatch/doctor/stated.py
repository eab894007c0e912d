"""What a file states about the keypoints of a photograph, before anybody has checked it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.colmap.database import open_colmap_database
from keypatch.errors import DataError
from keypatch.features.extraction import Features
from keypatch.features.feature_files import FeatureReader, find_group, group_names, open_h5, read_array
from keypatch.geometry import Keypoints
from keypatch.geometry.converters import COLMAP_CORNER

Unit = Literal["degrees", "radians"]
Floats = NDArray[np.float64]
Image = NDArray[np.uint8]

SIFT_LENGTH = 512.0  # COLMAP's, in bytes


@dataclass(frozen=True, eq=False)
class Stated:
    """Keypoints read as the convention of their file asks; whether the file keeps to it is to be found out."""

    xy: Floats  # (n, 2); the centre of the top-left pixel is (0, 0)
    sigma: Floats | None  # (n,); None: the file has no scales
    angle: Floats | None  # (n,) clockwise on screen, in the unit below; None: the file has no angles
    unit: Unit
    descriptors: Floats | None = None  # (n, dim)
    length: float | None = 1.0  # what a descriptor's should be; None: any may be meant
    transposed: bool = False  # the file holds one descriptor in a row where one in a column is expected

    def __len__(self) -> int:
        return len(self.xy)

    def take(self, index: ArrayLike) -> "Stated":
        """The keypoints chosen by indices or by a mask, without descriptors."""
        chosen = np.asarray(index)
        sigma = None if self.sigma is None else self.sigma[chosen]
        angle = None if self.angle is None else self.angle[chosen]
        return replace(self, xy=self.xy[chosen], sigma=sigma, angle=angle, descriptors=None)


def state(features: Features, unit_length: bool = True) -> Stated:
    """What a pipeline of this package, or one that gives the same type, states."""
    keypoints = features.keypoints
    sigma, angle = keypoints.sigma.astype(np.float64), keypoints.angle.astype(np.float64)
    length = 1.0 if unit_length else None
    return Stated(keypoints.xy, sigma, angle, "radians", features.descriptors.astype(np.float64), length)


def upright_keypoints(xy: Floats, sigma: Floats) -> Keypoints:
    """Keypoints to cut patches at, not turned; a scale that makes no sense is cut at the nearest that does."""
    x, y, scale = (column.astype(np.float32) for column in (xy[:, 0], xy[:, 1], np.clip(sigma, 1e-3, 1e6)))
    return Keypoints(x, y, scale, np.zeros_like(x))


def read_stated_h5(path: Path, photo: str, name: str | None = None) -> Stated:
    """hloc's convention: OpenCV's pixels, sigma, degrees clockwise, descriptors of length 1 in columns."""
    with FeatureReader(path) as reader:  # ours may hold a descriptor without unit length, and say whether they do
        length = 1.0 if not reader.settings or reader.settings.get("unit_length") else None
    with open_h5(path) as file:
        chosen = choose_name(path, group_names(file, "keypoints"), photo, name)
        group = find_group(path, file, chosen)
        keypoints, scales, oris, descriptors = (
            read_array(path, group, key) for key in ("keypoints", "scales", "oris", "descriptors")
        )
    where = f"{path}, {chosen}"
    if keypoints is None or keypoints.ndim != 2 or keypoints.shape[1] < 2:
        raise DataError(f"{where}: the keypoints should be an (n, 2) array. Write the file again.")
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


def choose_name(path: Path, names: Sequence[str], photo: str, name: str | None) -> str:
    """The name asked for; else that of the photo's file, with or without folders before it; else the only one."""
    wanted = name or photo
    if wanted in names:
        return wanted
    likely = [] if name else [each for each in names if each.endswith(f"/{photo}")] or names
    if len(likely) == 1:
        return likely[0]
    if not names:
        raise DataError(f"{path} has no keypoints. Describe some photos first.")
    some = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    raise DataError(
        f'{path} has no keypoints for "{wanted}". Choose one of its {len(names)} photos with --name: {some}.'
    )


def _colmap_frames(shapes: Floats, where: str) -> tuple[Floats | None, Floats | None]:
    columns = shapes.shape[1]
    if columns == 0:
        return None, None
    if columns == 2:
        return shapes[:, 0], shapes[:, 1]
    if columns != 4:
        raise DataError(
            f"{where}: COLMAP's keypoints have 2, 4 or 6 columns, not {columns + 2}. Create the database again."
        )
    a11, a12, a21, a22 = shapes.T
    return np.sqrt(np.maximum(a11 * a22 - a12 * a21, 0)), np.arctan2(a21, a11)


def _colmap_descriptors(array: NDArray[np.generic] | None, n: int, where: str) -> tuple[Floats | None, float]:
    if array is None:
        return None, SIFT_LENGTH
    if len(array) != n:
        raise DataError(f"{where}: {n} keypoints but {len(array)} descriptors. Create the database again.")
    return np.asarray(array, np.float64), SIFT_LENGTH if array.dtype == np.uint8 else 1.0


def _columns_of(array: NDArray[np.generic] | None, n: int, where: str) -> tuple[Floats | None, bool]:
    """Descriptors one per row, and whether the file had them so."""
    if array is None:
        return None, False
    if array.ndim != 2 or n not in array.shape:
        raise DataError(f"{where}: {n} keypoints but descriptors of shape {array.shape}. Write the file again.")
    transposed = array.shape[1] != n
    return _finite(array if transposed else array.T, where), transposed


def _column(array: NDArray[np.generic] | None, n: int, where: str) -> Floats | None:
    if array is None:
        return None
    if array.shape != (n,):
        raise DataError(f"{where}: scales or oris of shape {array.shape} for {n} keypoints. Write the file again.")
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
        raise DataError(f"{where}: keypoint {first} has scale {stated.sigma[first]:g}. Is it padding? Leave it out.")
    return stated

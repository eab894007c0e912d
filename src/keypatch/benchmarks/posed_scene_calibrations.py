"""Cameras as the Image Matching Challenge has them: calibration_<photo>.h5 with K, R and T, x = K (R X + T)."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.features import Photo
from keypatch.features.feature_files import open_h5, read_array
from keypatch.features.photos import read_header
from keypatch.geometry.poses import Pose
from keypatch.reconstruction.camera_models import Camera
from keypatch.reconstruction.cameras import PosedCamera

SUFFIX, PREFIX = ".h5", "calibration_"
SIZES = {"K": 9, "R": 9, "T": 3}


def read_calibrations(folder: Path, photos: Sequence[Photo]) -> dict[str, PosedCamera]:
    """The camera of each photo by its name; K is in our pixels, as the challenge applies it.

    Raises:
        DataError: a photo has no file, a file no photo, or one is damaged.
    """
    files = {path.stem.removeprefix(PREFIX): path for path in sorted(folder.glob(f"*{SUFFIX}"))}
    missing = [photo for photo in photos if photo.path.stem not in files]
    if missing:
        name = f"{PREFIX}{missing[0].path.stem}{SUFFIX}"
        raise DataError(f"{folder} has no {name}, the camera of {missing[0].name}; {len(missing)} photos have none.")
    for stem in files.keys() - {photo.path.stem for photo in photos}:
        raise DataError(f"{files[stem]} is the camera of no photo: {stem} is not in images. Copy the photo there.")
    return {photo.name: _read(files[photo.path.stem], photo.path) for photo in photos}


def _read(path: Path, photo: Path) -> PosedCamera:
    with open_h5(path, "calibration") as file:
        values = {key: _numbers(path, read_array(path, file, key), key) for key in SIZES}
    try:
        camera = Camera.from_matrix(values["K"].reshape(3, 3), read_header(photo).size)
        return PosedCamera(camera, Pose(values["R"].reshape(3, 3), values["T"].ravel()))
    except DataError:
        raise
    except KeypatchError as error:
        raise DataError(f"{path}: {error}") from None


def _numbers(path: Path, array: NDArray[np.generic] | None, key: str) -> NDArray[np.float64]:
    if array is None or array.size != SIZES[key]:
        raise DataError(f"{path} should hold {key} with {SIZES[key]} numbers. Copy it again.")
    numbers = np.asarray(array, np.float64)
    if not np.isfinite(numbers).all():
        raise DataError(f"{path}: {key} is not finite. Copy it again.")
    return numbers

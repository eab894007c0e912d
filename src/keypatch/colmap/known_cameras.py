"""Known cameras: ground truth and models made by others, as a COLMAP model or as Strecha's `.camera` files.

Text models of others are read here and not by pycolmap, which ends names at a blank and refuses a model without points;
ground truth comes as cameras.txt and images.txt alone, and is read where pycolmap is not installed.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.colmap.cameras import MODELS, Camera, PosedCamera, camera_of_model
from keypatch.colmap.models import read_model
from keypatch.errors import DataError
from keypatch.files import read_text, reading, require_folder
from keypatch.geometry.homographies import read_matrix
from keypatch.geometry.poses import Pose, quaternion_rotation

STRECHA = ".camera"  # one such file for each photo, beside the photos of his multi-view benchmark
STRECHA_LAYOUT = (9, 3, 9, 3, 2)  # K, distortion, R, C, size


def read_cameras(path: str | Path, *, stand_ins: bool = False) -> dict[str, PosedCamera]:
    """The known cameras by image name: a folder of Strecha's `.camera` files or a COLMAP model, text or binary.

    With `stand_ins`, a model may have cameras that cannot exist: `impossible_cameras` names them.

    Raises:
        DataError: the folder is neither, or a file in it is damaged.
        MissingExtra: the model is binary, and pycolmap is not installed.
    """
    folder = Path(path)
    require_folder(folder)
    if (folder / "images.txt").is_file():
        return dict(_text_cameras(folder, stand_ins))
    if (folder / "images.bin").is_file():
        return dict(read_model(folder, stand_ins=stand_ins).cameras)
    strecha = {file.name.removesuffix(STRECHA): _strecha_camera(file) for file in sorted(folder.glob(f"*{STRECHA}"))}
    if not strecha:
        raise DataError(
            f"{folder} has no cameras. Give a COLMAP model (cameras.txt and images.txt, or .bin) or a folder of "
            "Strecha's IMAGE.camera files."
        )
    return strecha


def read_intrinsics(path: str | Path) -> Camera | NDArray[np.float64]:
    """A camera matrix K (3, 3) in our pixels, or the camera of a line of COLMAP's cameras.txt, with or without its id.

    Raises:
        DataError: the file is neither, or has the lines of several cameras.
    """
    path = Path(path)
    lines = [line.split() for _, line in _lines(path)]
    words = lines[0][lines[0][0].isdecimal() :] if lines else []
    if not words or words[0].upper() not in MODELS:
        return read_matrix(path)
    if len(lines) > 1:
        raise DataError(f"{path} has {len(lines)} lines. Give a file with a single camera line.")
    with reading(path, "camera line MODEL WIDTH HEIGHT PARAMS..."):
        model, width, height, *params = words
        return Camera(model.upper(), int(width), int(height), tuple(float(value) for value in params))


def _text_cameras(folder: Path, stand_ins: bool) -> Iterator[tuple[str, PosedCamera]]:
    path, images, cameras = folder / "cameras.txt", folder / "images.txt", dict[int, Camera]()
    for number, line in _lines(path):
        with reading(f"{path}, line {number}", "line CAMERA_ID MODEL WIDTH HEIGHT PARAMS..."):
            key, model, width, height, *params = line.split()
            size, values = (int(width), int(height)), tuple(float(value) for value in params)
            cameras[int(key)] = camera_of_model(int(key), model, size, values, stand_ins=stand_ins)
    lines = _lines(images, blank=True)
    for number, line in lines:
        if not line.strip():
            continue
        with reading(f"{images}, line {number}", "line IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME"):
            _, qw, qx, qy, qz, tx, ty, tz, camera, name = line.split(maxsplit=9)
            if int(camera) not in cameras:
                raise DataError(f"camera {camera} is not in {path}.")
            motion = [float(value) for value in (qw, qx, qy, qz, tx, ty, tz)]
            posed = PosedCamera(cameras[int(camera)], Pose(quaternion_rotation(motion[:4]), np.array(motion[4:])))
        number, points = next(lines, (number, ""))  # a line of its own, often empty
        if len(points.split()) % 3:
            raise DataError(f"{images}, line {number}: expected X Y POINT3D_ID for each point of the image above.")
        yield name, posed


def _lines(path: Path, *, blank: bool = False) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, without comments, and blank ones only where they mean something."""
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if not line.startswith("#") and (blank or line.strip()):
            yield number, line


def _strecha_camera(path: Path) -> PosedCamera:
    """K is in our pixels; R turns from camera to world and C is the centre, in the world's unit."""
    with reading(path, "camera file of Strecha's"):
        numbers = np.array(read_text(path).split(), np.float64)
    expected = sum(STRECHA_LAYOUT)
    if len(numbers) != expected or not np.isfinite(numbers).all():
        raise DataError(f"{path} should hold {expected} finite numbers (K, 0 0 0, R, C, size), found {len(numbers)}.")
    k, distortion, r, centre, size = np.split(numbers, np.cumsum(STRECHA_LAYOUT)[:-1])
    if distortion.any():
        raise DataError(f"{path} has lens distortion {distortion}; only undistorted photos are supported.")
    turn = r.reshape(3, 3)
    with reading(path, "camera file of Strecha's"):
        pose = Pose(turn.T, -turn.T @ centre)
        return PosedCamera(Camera.from_matrix(k.reshape(3, 3), (int(size[0]), int(size[1]))), pose)

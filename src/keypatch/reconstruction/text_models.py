"""COLMAP's text models: cameras.txt, images.txt and points3D.txt, read without pycolmap."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.files import reason
from keypatch.geometry.poses import Pose
from keypatch.reconstruction.camera_models import Camera, camera_of_model

_IMAGE = "IMAGE_ID QW QX QY QZ TX TY TZ CAMERA_ID NAME"
_POINT = "POINT3D_ID X Y Z R G B ERROR (IMAGE_ID POINT2D_IDX)..."


@dataclass(frozen=True, eq=False)
class Points:
    """The 3D points of a model."""

    xyz: NDArray[np.float64]  # (n, 3)
    colours: NDArray[np.uint8]  # (n, 3) red, green, blue
    errors: NDArray[np.float64]  # (n,) reprojection, pixels
    track_lengths: NDArray[np.int64]  # (n,)


@dataclass(frozen=True, eq=False)
class Observations:
    """Which images see which points: a row for every place in an image that belongs to a point."""

    names: Sequence[str]  # of the images
    images: NDArray[np.int64]  # (m,) positions among the names
    points: NDArray[np.int64]  # (m,) positions among the points of `read_points`


def read_text_cameras(folder: Path, *, stand_ins: bool = False) -> dict[str, tuple[Camera, Pose]]:
    """Camera and pose of every image of a text model, by name; names keep their blanks."""
    cameras = dict(_cameras(folder / "cameras.txt", stand_ins))
    posed: dict[str, tuple[Camera, Pose]] = {}
    path = folder / "images.txt"
    for number, line in _image_lines(path):
        with _Line(path, number, _IMAGE):
            name, camera, pose = _posed(line)
            posed[name] = cameras[camera], pose
    return posed


def read_text_poses(folder: Path) -> dict[str, Pose]:
    """The poses alone: where COLMAP had to find the focal length of few photos, its cameras may be none that exist."""
    path, poses = folder / "images.txt", dict[str, Pose]()
    for number, line in _image_lines(path):
        with _Line(path, number, _IMAGE):
            name, _, pose = _posed(line)
            poses[name] = pose
    return poses


def read_points(folder: Path) -> Points:
    """The 3D points of a text model."""
    path = folder / "points3D.txt"
    xyz, colours, errors, lengths = [], [], [], []
    for number, line in _rows(path):
        with _Line(path, number, _POINT):
            _, x, y, z, red, green, blue, error, *track = line.split()
            xyz.append((float(x), float(y), float(z)))
            colours.append((int(red), int(green), int(blue)))
            errors.append(float(error))
            lengths.append(len(track) // 2)
    return Points(
        np.array(xyz, np.float64).reshape(-1, 3),
        np.array(colours, np.uint8).reshape(-1, 3),
        np.array(errors, np.float64),
        np.array(lengths, np.int64),
    )


def read_observations(folder: Path) -> Observations:
    """The observations of a text model."""
    path, names, places = folder / "images.txt", list[str](), dict[int, int]()
    for number, line in _image_lines(path):
        with _Line(path, number, _IMAGE):
            image, *_, name = line.split(maxsplit=9)
            places[int(image)] = len(names)
            names.append(name.rstrip("\r\n"))
    path, images, points = folder / "points3D.txt", list[int](), list[int]()
    for point, (number, line) in enumerate(_rows(path)):
        with _Line(path, number, _POINT):
            for image in line.split()[8::2]:
                if int(image) not in places:
                    raise ValueError(f"image {image} is not in images.txt")
                images.append(places[int(image)])
                points.append(point)
    return Observations(names, np.array(images, np.int64), np.array(points, np.int64))


def _image_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The first of the two lines of each image."""
    lines = _lines(path)
    for number, line in lines:
        if not line.strip() or line.startswith("#"):
            continue
        yield number, line
        number, points = next(lines, (number, ""))  # the image's points: a line of its own, often empty
        with _Line(path, number, "X Y POINT3D_ID for each point of the image above, or an empty line"):
            if len(points.split()) % 3:
                raise ValueError("the number of values is not a multiple of 3")


def _rows(path: Path) -> Iterator[tuple[int, str]]:
    """The lines that are neither empty nor comments."""
    return ((number, line) for number, line in _lines(path) if line.strip() and not line.startswith("#"))


def _posed(line: str) -> tuple[str, int, Pose]:
    """Name, camera and pose of an image."""
    _, *numbers, camera, name = line.split(maxsplit=9)
    values = [float(value) for value in numbers]
    return name.rstrip("\r\n"), int(camera), Pose(_rotation(values[:4]), np.array(values[4:]))


def _cameras(path: Path, stand_ins: bool) -> Iterator[tuple[int, Camera]]:
    for number, line in _rows(path):
        with _Line(path, number, "CAMERA_ID MODEL WIDTH HEIGHT PARAMS..."):
            camera, model, width, height, *params = line.split()
            size, values = (int(width), int(height)), tuple(float(value) for value in params)
            yield int(camera), camera_of_model(int(camera), model, size, values, stand_ins=stand_ins)


def _rotation(quaternion: list[float]) -> NDArray[np.float64]:
    """The rotation matrix of a quaternion w, x, y, z."""
    norm = float(np.linalg.norm(quaternion))
    if not 0.9 < norm < 1.1:
        raise ValueError(f"the quaternion has length {norm}, not 1")
    w, x, y, z = np.array(quaternion) / norm
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.asarray(np.eye(3) + 2 * w * cross + 2 * cross @ cross)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open(encoding="utf-8") as file:
            yield from enumerate(file, start=1)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {reason(error)}.") from None
    except UnicodeDecodeError:
        raise DataError(f"{path} is not text. Copy it again.") from None


@dataclass(frozen=True)
class _Line:
    """Names file and line of whatever goes wrong in its block."""

    path: Path
    number: int
    expected: str

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, (ValueError, KeyError, KeypatchError)):
            detail = f"camera {error} is not in cameras.txt" if isinstance(error, KeyError) else error
            raise DataError(f"{self.path}, line {self.number}: expected {self.expected} ({detail}).") from None

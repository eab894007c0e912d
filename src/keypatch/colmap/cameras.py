"""Cameras by COLMAP's models, their matrix in our pixels, and the camera that took a photo."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, Self

import cv2
import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import DataError, KeypatchError
from keypatch.geometry.converters import COLMAP_CORNER
from keypatch.geometry.poses import Pose
from keypatch.images import Header, Photo, read_header


class CameraModel(NamedTuple):
    """What distinguishes COLMAP's camera models."""

    number: int  # in databases
    focals: int  # one focal length, or one along x and one along y
    distortion: int  # parameters


MODELS = {
    "SIMPLE_PINHOLE": CameraModel(0, 1, 0),
    "PINHOLE": CameraModel(1, 2, 0),
    "SIMPLE_RADIAL": CameraModel(2, 1, 1),
    "RADIAL": CameraModel(3, 1, 2),
    "OPENCV": CameraModel(4, 2, 4),
    "FULL_OPENCV": CameraModel(6, 2, 8),
    "SIMPLE_RADIAL_FISHEYE": CameraModel(8, 1, 1),
    "RADIAL_FISHEYE": CameraModel(9, 1, 2),
    "OPENCV_FISHEYE": CameraModel(5, 2, 4),
    "THIN_PRISM_FISHEYE": CameraModel(10, 2, 8),
}
GUESS = 1.2  # focal length in units of the longer side, where nothing is known: COLMAP's own guess
FILM_DIAGONAL = math.hypot(36, 24)  # mm; a focal length "in 35 mm film" has the same angle over the diagonal


class ImpossibleCamera(KeypatchError):
    """Parameters that no camera has; COLMAP may estimate them where few photos constrain the focal length."""


@dataclass(frozen=True)
class Camera:
    """A COLMAP camera: a model, the size of its photos, and parameters in COLMAP's order and pixel convention.

    The order is focal lengths, principal point, distortion. The middle of an image of width w is at w / 2 in COLMAP's
    pixels; `matrix` has it at w / 2 - 0.5, in the pixels of `Keypoints`.

    >>> kp.Camera("SIMPLE_RADIAL", 1536, 1024, (1380, 768, 512, -0.05)).matrix[0]
    array([1380. ,    0. ,  767.5])
    """

    model: str
    width: int
    height: int
    params: tuple[float, ...]
    focal_known: bool = True  # False: COLMAP takes the focal length for a guess

    def __post_init__(self) -> None:
        _, focals, distortion = _find_model(self.model)
        object.__setattr__(self, "params", tuple(float(value) for value in self.params))
        if len(self.params) != focals + 2 + distortion:
            raise KeypatchError(
                f"A {self.model} camera takes {focals + 2 + distortion} parameters, not {len(self.params)}."
            )
        if self.width < 1 or self.height < 1:
            raise KeypatchError(f"A camera cannot have photos of {self.width} x {self.height} pixels.")
        if not (np.isfinite(self.params).all() and min(self.params[:focals]) > 0):
            raise ImpossibleCamera(f"A camera needs finite parameters and a focal length above 0, not {self.params}.")

    @classmethod
    def from_focal(cls, model: str, size: tuple[int, int], focal: float, *, focal_known: bool) -> Self:
        """A camera without distortion, its principal point in the middle of photos of this size (width, height)."""
        _, focals, distortion = _find_model(model)
        (width, height), middle = size, (size[0] / 2, size[1] / 2)
        return cls(model, width, height, (focal,) * focals + middle + (0.0,) * distortion, focal_known)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, size: tuple[int, int]) -> "Camera":
        """A PINHOLE camera from a 3x3 matrix as in OpenCV, in our pixels."""
        k = np.asarray(matrix, np.float64)
        if k.shape != (3, 3) or abs(k[0, 1]) > 1e-6 * abs(k[0, 0]) or np.abs(k[[1, 2, 2], [0, 0, 1]]).max() > 0:
            raise KeypatchError("A camera matrix is 3x3, [f_x 0 c_x; 0 f_y c_y; 0 0 1]: COLMAP has no skew.")
        k = k / k[2, 2]
        return cls("PINHOLE", *size, (k[0, 0], k[1, 1], k[0, 2] + COLMAP_CORNER, k[1, 2] + COLMAP_CORNER))

    @property
    def focal(self) -> tuple[float, float]:
        """Focal lengths along x and y, in pixels."""
        return self.params[0], self.params[_find_model(self.model).focals - 1]

    @property
    def distortion(self) -> tuple[float, ...]:
        """The parameters of the lens distortion."""
        return self.params[_find_model(self.model).focals + 2 :]

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The 3x3 camera matrix in our pixels, as in OpenCV, without the distortion."""
        focals = _find_model(self.model).focals
        (f_x, f_y), (c_x, c_y) = self.focal, self.params[focals : focals + 2]
        return np.array([[f_x, 0, c_x - COLMAP_CORNER], [0, f_y, c_y - COLMAP_CORNER], [0, 0, 1]])


class PosedCamera(NamedTuple):
    """A camera and where it stood; `camera.matrix` is in our pixels, the pose goes from world to camera."""

    camera: Camera
    pose: Pose


@dataclass(frozen=True)
class StandIn(Camera):
    """Takes the place of a model's camera that cannot exist."""

    number: int = 0  # of that camera in the model
    found: tuple[float, ...] = ()  # its parameters


def camera_of_model(
    number: int, model: str, size: tuple[int, int], params: tuple[float, ...], *, stand_ins: bool
) -> Camera:
    """A camera as a model has it; with `stand_ins`, one with a guessed focal length where it cannot exist."""
    try:
        return Camera(model, *size, params)
    except ImpossibleCamera:
        if not stand_ins:
            raise
        guess = StandIn.from_focal(model, size, GUESS * max(size), focal_known=False)
        return replace(guess, number=number, found=params)


def impossible_cameras(posed: Mapping[str, PosedCamera]) -> list[str]:
    """A sentence for each camera of a model that cannot exist."""
    photos: dict[StandIn, list[str]] = {}
    for name, (camera, _) in posed.items():
        if isinstance(camera, StandIn):
            photos.setdefault(camera, []).append(name)
    return [_impossible(camera, sorted(names)) for camera, names in photos.items()]


def _impossible(camera: StandIn, photos: list[str]) -> str:
    some = ", ".join(photos[:3]) + (f" and {len(photos) - 3} more" if len(photos) > 3 else "")
    numbers = ", ".join(f"{value:.6g}" for value in camera.found)
    rule = "a focal length must be above 0" if np.isfinite(camera.found).all() else "parameters must be finite numbers"
    return (
        f"Camera {camera.number} of the model ({camera.model}, of {some}) has the parameters {numbers}, but {rule}: do "
        "not trust its poses and points. Give the focal length if you know it, or let photos from one camera share it, "
        "and reconstruct again."
    )


def to_rays(places: NDArray[np.float64], camera: Camera) -> NDArray[np.float64]:
    """(n, 2) the directions (x / z, y / z) of what is seen at places (n, 2) in our pixels, whatever the lens did."""
    if camera.model.endswith("FISHEYE"):
        raise KeypatchError(f"Photos of a {camera.model} camera must be undistorted first.")
    if not len(places):
        return np.empty((0, 2))
    bend = np.zeros(8)  # COLMAP's order is OpenCV's: k1 k2 p1 p2 k3 k4 k5 k6
    distortion = camera.distortion
    bend[: len(distortion)] = distortion
    return np.asarray(cv2.undistortPoints(places[:, None], camera.matrix, bend), np.float64)[:, 0]


def project(local: NDArray[np.float64], camera: Camera) -> NDArray[np.float64]:
    """(n, 2) where a camera sees points (n, 3) of its own coordinates, in our pixels; nan of those not before it.

    The lens may bend in ways that no longer hold far outside the image: what comes out there means nothing.
    """
    if camera.model == "THIN_PRISM_FISHEYE":
        raise KeypatchError("Photos of a THIN_PRISM_FISHEYE camera must be undistorted first.")
    places = np.full((len(local), 2), np.nan)
    ahead = local[:, 2] > 1e-9 * np.linalg.norm(local, axis=1)
    if not ahead.any():
        return places
    fisheye, still = camera.model.endswith("FISHEYE"), np.zeros(3)
    bend = np.zeros(4 if fisheye else 8)  # COLMAP's order is OpenCV's
    bend[: len(camera.distortion)] = camera.distortion
    look = cv2.fisheye.projectPoints if fisheye else cv2.projectPoints
    seen = look(np.ascontiguousarray(local[ahead])[:, None], still, still, camera.matrix, bend)[0]
    places[ahead] = np.asarray(seen, np.float64).reshape(-1, 2)
    return places


def straightened(places: NDArray[np.float64], camera: Camera) -> NDArray[np.float64]:
    """Where a camera of the same matrix without distortion would see what is seen at these places (n, 2)."""
    if not any(camera.distortion):
        return places
    matrix = camera.matrix
    return to_rays(places, camera) * matrix[[0, 1], [0, 1]] + matrix[:2, 2]


def header_camera(header: Header, model: str, focal: float | None = None) -> Camera:
    """The camera of a photo by its file's header; `focal`, in pixels, overrides the EXIF data."""
    size, _, film = header
    if focal is not None:
        return Camera.from_focal(model, size, focal, focal_known=True)
    if film > 0:
        return Camera.from_focal(model, size, film / FILM_DIAGONAL * math.hypot(*size), focal_known=True)
    return Camera.from_focal(model, size, GUESS * max(size), focal_known=False)


def photo_camera(path: Path, model: str, focal: float | None = None) -> Camera:
    """The camera of a photo as stored in its file."""
    try:
        return header_camera(read_header(path), model, focal)
    except DataError as error:
        raise DataError(f"{error} Leave the photo out to continue without it.") from error


def choose_cameras(
    photos: Sequence[Photo], known: Mapping[str, Camera], model: str, focal: float | None, shared: bool
) -> dict[str, Camera]:
    """A camera for each photo: the known one, else that of its file; `shared`: one camera took all photos.

    Raises:
        DataError: a known camera, or the shared one, is of another size than the photo.
    """
    found = {photo.name: photo_camera(photo.path, model, focal) for photo in photos}
    if shared:
        first = next((camera for camera in found.values() if camera.focal_known), next(iter(found.values())))
        found = {name: _same_size(name, first, camera, "the shared camera") for name, camera in found.items()}
    return {name: _same_size(name, known.get(name, own), own, "its known camera") for name, own in found.items()}


def _same_size(name: str, camera: Camera, own: Camera, which: str) -> Camera:
    if (camera.width, camera.height) != (own.width, own.height):
        raise DataError(
            f"{name} has {own.width} x {own.height} pixels, but {which} has {camera.width} x {camera.height}. All "
            "photos from one camera must have the same size."
        )
    return camera


def _find_model(name: str) -> CameraModel:
    if name not in MODELS:
        raise KeypatchError(f'There is no camera model "{name}". Choose one of {", ".join(MODELS)}.')
    return MODELS[name]

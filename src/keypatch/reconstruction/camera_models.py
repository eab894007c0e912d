"""Cameras by COLMAP's models, and their matrix in our pixels."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry.converters import COLMAP_CORNER

# COLMAP's name: how many focal lengths (one, or x and y), how many parameters of distortion
MODELS = {
    "SIMPLE_PINHOLE": (1, 0),
    "PINHOLE": (2, 0),
    "SIMPLE_RADIAL": (1, 1),
    "RADIAL": (1, 2),
    "OPENCV": (2, 4),
    "FULL_OPENCV": (2, 8),
    "SIMPLE_RADIAL_FISHEYE": (1, 1),
    "RADIAL_FISHEYE": (1, 2),
    "OPENCV_FISHEYE": (2, 4),
    "THIN_PRISM_FISHEYE": (2, 8),
}
GUESS = 1.2  # focal length in units of the longer side, where nothing is known: COLMAP's own guess


class ImpossibleCamera(KeypatchError):
    """Parameters that no camera has; COLMAP may find some where few photos say little of the focal length."""


@dataclass(frozen=True)
class Camera:
    """What COLMAP calls a camera: a model, the size of its photos, and parameters in COLMAP's order and pixels.

    The order is focal lengths, principal point, distortion. In the middle of an image of width w lies the principal
    point w / 2 of COLMAP; `matrix` has it at w / 2 - 0.5, in the pixels of `Keypoints`.
    """

    model: str
    width: int
    height: int
    params: tuple[float, ...]
    focal_known: bool = True  # False: COLMAP takes the focal length for a guess

    def __post_init__(self) -> None:
        focals, distortion = _model(self.model)
        object.__setattr__(self, "params", tuple(float(value) for value in self.params))
        if len(self.params) != focals + 2 + distortion:
            raise KeypatchError(
                f"A camera {self.model} has {focals + 2 + distortion} parameters, {len(self.params)} were given."
            )
        if self.width < 1 or self.height < 1:
            raise KeypatchError(f"A camera's photos cannot be {self.width} x {self.height} pixels.")
        if not (np.isfinite(self.params).all() and min(self.params[:focals]) > 0):
            raise ImpossibleCamera(f"A camera's parameters are finite and its focal length above 0, not {self.params}.")

    @classmethod
    def from_focal(cls, model: str, size: tuple[int, int], focal: float, *, focal_known: bool) -> Self:
        """A camera without distortion whose principal point is the middle of photos of this size (width, height)."""
        focals, distortion = _model(model)
        (width, height), middle = size, (size[0] / 2, size[1] / 2)
        return cls(model, width, height, (focal,) * focals + middle + (0.0,) * distortion, focal_known)

    @classmethod
    def from_matrix(cls, matrix: ArrayLike, size: tuple[int, int]) -> "Camera":
        """A PINHOLE camera from a 3x3 matrix as OpenCV has it, in our pixels."""
        k = np.asarray(matrix, np.float64)
        if k.shape != (3, 3) or abs(k[0, 1]) > 1e-6 * abs(k[0, 0]) or np.abs(k[[1, 2, 2], [0, 0, 1]]).max() > 0:
            raise KeypatchError("A camera matrix is 3x3, [f_x 0 c_x; 0 f_y c_y; 0 0 1]: COLMAP has no skew.")
        k = k / k[2, 2]
        return cls("PINHOLE", *size, (k[0, 0], k[1, 1], k[0, 2] + COLMAP_CORNER, k[1, 2] + COLMAP_CORNER))

    @property
    def focal(self) -> tuple[float, float]:
        """Focal lengths along x and y, in pixels."""
        return self.params[0], self.params[_model(self.model)[0] - 1]

    @property
    def matrix(self) -> NDArray[np.float64]:
        """The 3x3 camera matrix in our pixels, as OpenCV takes it; without the distortion."""
        focals = _model(self.model)[0]
        (f_x, f_y), (c_x, c_y) = self.focal, self.params[focals : focals + 2]
        return np.array([[f_x, 0, c_x - COLMAP_CORNER], [0, f_y, c_y - COLMAP_CORNER], [0, 0, 1]])


@dataclass(frozen=True)
class StandIn(Camera):
    """Drawn in the place of a camera of a model that cannot exist."""

    number: int = 0  # of that camera in the model
    found: tuple[float, ...] = ()  # its parameters


def camera_of_model(
    number: int, model: str, size: tuple[int, int], params: tuple[float, ...], *, stand_ins: bool
) -> Camera:
    """A camera as a model has it; with `stand_ins` another with the guessed focal length where it cannot exist."""
    try:
        return Camera(model, *size, params)
    except ImpossibleCamera:
        if not stand_ins:
            raise
        guess = StandIn.from_focal(model, size, GUESS * max(size), focal_known=False)
        return replace(guess, number=number, found=params)


def _model(name: str) -> tuple[int, int]:
    if name not in MODELS:
        raise KeypatchError(f'There is no camera model "{name}". Choose one of {", ".join(MODELS)}.')
    return MODELS[name]

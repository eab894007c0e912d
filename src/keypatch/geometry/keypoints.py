"""Keypoints: places, scales, angles and shapes of interest points in a photograph."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError


@dataclass(frozen=True, eq=False)
class Keypoints:
    """Keypoints as arrays of the same length n.

    The frame of a keypoint is the matrix sigma * shape @ R(angle). Arrays are converted to float32.

    >>> kp.Keypoints(x=[10, 20], y=[5, 7], sigma=[2, 2], angle=[0, 1.57]).xy
    array([[10.,  5.],
           [20.,  7.]])
    """

    x: NDArray[np.float32]  # pixels; the centre of the top-left pixel is (0, 0)
    y: NDArray[np.float32]
    sigma: NDArray[np.float32]  # scale, pixels
    angle: NDArray[np.float32]  # radians, clockwise on screen
    shape: NDArray[np.float32] | None = None  # (n, 2, 2) of determinant 1; None: not sheared
    response: NDArray[np.float32] | None = None  # the detector's strength

    def __post_init__(self) -> None:
        n = np.size(self.x)
        for name in ("x", "y", "sigma", "angle", "shape", "response"):
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, _checked(name, value, (n, 2, 2) if name == "shape" else (n,)))
        if n and self.sigma.min() <= 0:
            raise KeypatchError(f"Keypoint {np.argmin(self.sigma)} has sigma {self.sigma.min()}; it must be above 0.")
        if self.shape is not None and n and np.abs(np.linalg.det(self.shape) - 1).max() > 1e-3:
            raise KeypatchError("A keypoint's shape must have determinant 1; Keypoints.from_frames takes any frame.")

    def __len__(self) -> int:
        return len(self.x)

    @property
    def xy(self) -> NDArray[np.float64]:
        """(n, 2) positions."""
        return np.stack([self.x, self.y], axis=1).astype(np.float64)

    def take(self, index: ArrayLike | slice) -> "Keypoints":
        """The keypoints chosen by indices, by a mask or by a slice."""
        chosen = index if isinstance(index, slice) else np.asarray(index, np.int64 if np.size(index) == 0 else None)
        shape = None if self.shape is None else self.shape[chosen]
        response = None if self.response is None else self.response[chosen]
        return Keypoints(self.x[chosen], self.y[chosen], self.sigma[chosen], self.angle[chosen], shape, response)

    def frames(self) -> NDArray[np.float64]:
        """(n, 2, 2) matrices sigma * shape @ R(angle); their columns are the frame's x and y axes in the photograph."""
        turned = rotations(self.angle) if self.shape is None else self.shape @ rotations(self.angle)
        return np.asarray(self.sigma.astype(np.float64)[:, None, None] * turned)

    @classmethod
    def from_frames(cls, xy: ArrayLike, frames: ArrayLike, response: ArrayLike | None = None) -> "Keypoints":
        """Keypoints at xy (n, 2) whose frames() are those given (n, 2, 2).

        A frame determines only the product shape @ R(angle); the angle is that of the polar decomposition, so the shape
        is symmetric: it stretches without turning. A mirroring or flat frame raises KeypatchError.
        """
        places, matrices = np.asarray(xy, np.float64).reshape(-1, 2), np.asarray(frames, np.float64).reshape(-1, 2, 2)
        area = matrices[:, 0, 0] * matrices[:, 1, 1] - matrices[:, 0, 1] * matrices[:, 1, 0]
        if not np.all(area > 0):  # also catches nan
            raise KeypatchError(f"Frame {np.argmin(area > 0)} is flat, mirrored or not finite. Leave it out.")
        sigma = np.sqrt(area)
        # The rotation nearest to a 2x2 matrix of positive determinant is that of its (a11 + a22, a21 - a12).
        angle = np.arctan2(matrices[:, 1, 0] - matrices[:, 0, 1], matrices[:, 0, 0] + matrices[:, 1, 1])
        shape = matrices @ rotations(-angle) / sigma[:, None, None]
        x, y, sigma32, angle32 = (column.astype(np.float32) for column in (*places.T, sigma, angle))
        strength = None if response is None else np.asarray(response, np.float32)
        return cls(x, y, sigma32, angle32, shape.astype(np.float32), strength)

    @classmethod
    def join(cls, parts: Sequence["Keypoints"]) -> "Keypoints":
        """All keypoints concatenated; responses are kept if all have them."""
        columns = {name: np.concatenate([getattr(p, name) for p in parts]) for name in ("x", "y", "sigma", "angle")}
        shape, response = None, None
        if any(part.shape is not None for part in parts):
            plain = np.eye(2, dtype=np.float32)
            shape = np.concatenate(
                [np.broadcast_to(plain, (len(p), 2, 2)) if p.shape is None else p.shape for p in parts]
            )
        known = [part.response for part in parts if part.response is not None]
        if len(known) == len(parts):
            response = np.concatenate(known)
        return cls(**columns, shape=shape, response=response)

    def without_shape(self) -> "Keypoints":
        """The same positions, scales and angles, without shear."""
        return replace(self, shape=None)


def rotations(angle: ArrayLike) -> NDArray[np.float64]:
    """The matrices (..., 2, 2) that turn by angles of dimensions (...), in radians, clockwise on screen."""
    cos, sin = np.cos(angle, dtype=np.float64), np.sin(angle, dtype=np.float64)
    return np.stack([np.stack([cos, -sin], axis=-1), np.stack([sin, cos], axis=-1)], axis=-2)


def _checked(name: str, value: ArrayLike, expected: tuple[int, ...]) -> NDArray[np.float32]:
    array = np.asarray(value, np.float32)
    if array.shape != expected:
        raise KeypatchError(f"The keypoints' {name} must have shape {expected} to match x, not {array.shape}.")
    if not np.isfinite(array).all():
        first = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise KeypatchError(f"Keypoint {first} has {name} {array[first]}; every value must be finite.")
    return array

"""What a file states about the keypoints of a photograph, before anybody has checked it."""

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.features.features import Features
from keypatch.geometry import Keypoints

Unit = Literal["degrees", "radians"]
Floats = NDArray[np.float64]


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


def upright(xy: Floats, sigma: Floats) -> Keypoints:
    """Keypoints to cut patches at, not turned; a scale that makes no sense is cut at the nearest that does."""
    x, y, scale = (column.astype(np.float32) for column in (xy[:, 0], xy[:, 1], np.clip(sigma, 1e-3, 1e6)))
    return Keypoints(x, y, scale, np.zeros_like(x))

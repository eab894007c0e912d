"""Frames that miss their point a little, as a detector's do, and how much of each other two frames cover."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry.keypoints import Keypoints, rotations


@dataclass(frozen=True)
class Jitter:
    """The largest errors of a frame, in its own coordinates; an error lies anywhere between minus and plus this."""

    angle: float  # radians
    log_scale: float
    log_stretch: float  # of the ratio of the axes, in a random direction
    shift: float  # in sigmas, for x and y each


def jitter_keypoints(keypoints: Keypoints, jitter: Jitter, rng: np.random.Generator) -> Keypoints:
    """The keypoints with random errors, uniformly distributed and independent of each other."""
    n = len(keypoints)
    draws = rng.uniform(-1, 1, (n, 5))
    direction = rng.uniform(0, math.pi, n)
    scale = np.exp(jitter.log_scale * draws[:, 0])
    stretch = np.exp(jitter.log_stretch / 2 * draws[:, 1])
    axes = np.stack([scale * stretch, scale / stretch], axis=1)[:, :, None] * np.eye(2)  # (n, 2, 2) diagonal
    distortion = rotations(jitter.angle * draws[:, 2]) @ rotations(direction) @ axes @ rotations(-direction)
    frames = keypoints.frames()
    shift = (frames @ (jitter.shift * draws[:, 3:, None]))[:, :, 0]
    return Keypoints.from_frames(keypoints.xy + shift, frames @ distortion, keypoints.response)


def frame_overlap(first: Keypoints, second: Keypoints, reach: float = 12.0) -> NDArray[np.float64]:
    """Intersection over union (n,) of the ellipses that two lists of frames make of a disc of `reach` sigmas.

    12 sigmas: the disc inscribed in a patch of 24. Counted at 1024 points spread evenly over the first ellipse: exact
    to about 0.005. As usual in the field a turn alone does not lower the overlap.
    """
    if len(first) != len(second):
        raise KeypatchError(f"Overlaps need two lists of the same length, not {len(first)} and {len(second)} frames.")
    number = np.arange(1024)
    radius, turn = np.sqrt((number + 0.5) / 1024), number * math.pi * (3 - math.sqrt(5))  # a sunflower's seeds
    disc = reach * np.stack([radius * np.cos(turn), radius * np.sin(turn)])  # (2, 1024)
    apart = (first.xy - second.xy)[:, :, None]
    seen = np.linalg.solve(second.frames(), first.frames() @ disc + apart)
    inside = np.mean(np.sum(seen**2, axis=1) <= reach**2, axis=1)
    first_area, second_area = first.sigma.astype(np.float64) ** 2, second.sigma.astype(np.float64) ** 2
    shared = inside * first_area
    return np.asarray(shared / (first_area + second_area - shared))

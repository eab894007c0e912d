"""Orientation: under which reading of the angles do they point along the gradients around the keypoints?"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keypatch.doctor.stated import Floats, Unit, upright
from keypatch.geometry import cut_patches

BINS = 36
SIDE, SPAN = 33, 9.0  # the patches: Lowe's window of 1.5 sigma, to three times that
WINDOW = 1.5  # sigmas

STATED, SIGN, UNIT, UNIT_AND_SIGN, FROM_Y = "as stated", "other sign", "other unit", "other unit and sign", "from y"


@dataclass(frozen=True)
class Fit:
    """How high the histogram of gradients is where the angle points, as a share of its peak; mean over keypoints."""

    height: float
    chance: float  # the same with the angles dealt out to the keypoints at random

    @property
    def lift(self) -> float:
        return self.height - self.chance


def fit_angles(image: NDArray[np.uint8], xy: Floats, sigma: Floats, angle: Floats, unit: Unit) -> Mapping[str, Fit]:
    """The fit of every reading of the angles."""
    histograms = gradient_histograms(image, xy, sigma)
    stated, other = (np.radians(angle), angle) if unit == "degrees" else (angle, np.radians(angle))
    readings = {
        STATED: stated,
        SIGN: -stated,
        UNIT: other,
        UNIT_AND_SIGN: -other,
        FROM_Y: math.pi / 2 - stated,
    }
    return {name: _fit(histograms, radians) for name, radians in readings.items()}


def gradient_histograms(image: NDArray[np.uint8], xy: Floats, sigma: Floats) -> Floats:
    """(n, 36): how much gradient points in each direction around each keypoint, from Lowe 2004, over its peak."""
    patches = cut_patches(image, upright(xy, sigma), SPAN, SIDE).astype(np.float32)
    gx, gy = patches[:, 1:-1, 2:] - patches[:, 1:-1, :-2], patches[:, 2:, 1:-1] - patches[:, :-2, 1:-1]
    samples = (np.arange(1, SIDE - 1) - (SIDE - 1) / 2) * SPAN / SIDE
    window = np.exp(-(samples[:, None] ** 2 + samples**2) / (2 * WINDOW**2))
    bins = np.rint(np.arctan2(gy, gx) * (BINS / (2 * math.pi))).astype(np.int64) % BINS
    rows = np.arange(len(xy))[:, None, None] * BINS + bins
    weights = (np.hypot(gx, gy) * window).ravel()
    counts = np.asarray(np.bincount(rows.ravel(), weights, len(xy) * BINS), np.float64).reshape(-1, BINS)
    for _ in range(2):
        counts = (np.roll(counts, 1, axis=1) + 2 * counts + np.roll(counts, -1, axis=1)) / 4
    return np.asarray(counts / np.maximum(counts.max(axis=1, keepdims=True), 1e-9))


def _fit(histograms: Floats, radians: Floats) -> Fit:
    # every keypoint's angle in the mean histogram is the mean over all ways of dealing the angles out
    mean = np.broadcast_to(histograms.mean(axis=0), histograms.shape)
    return Fit(float(_heights(histograms, radians).mean()), float(_heights(mean, radians).mean()))


def _heights(histograms: Floats, radians: Floats) -> Floats:
    """(n,) values at the angles, interpolated between the centres of bins."""
    place = radians * (BINS / (2 * math.pi)) % BINS
    low = np.floor(place).astype(np.int64)
    rows, share = np.arange(len(histograms)), place - low
    return np.asarray(histograms[rows, low % BINS] * (1 - share) + histograms[rows, (low + 1) % BINS] * share)

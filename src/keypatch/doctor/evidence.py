"""What places, angles and descriptors show by themselves; scales and centres are measured at blobs (`blobs`)."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from keypatch.doctor.stated import Floats, Stated, Unit, upright_keypoints
from keypatch.geometry import cut_patches

# the longer sides to which tools shrink photographs (hloc, COLMAP, image-matching benchmarks)
USUAL_SIDES = (480, 512, 640, 768, 800, 960, 1024, 1200, 1280, 1536, 1600, 1920, 2000, 2048, 2400, 3200)

BINS = 36
SIDE, SPAN = 33, 9.0  # the patches: Lowe's window of 1.5 sigma, to three times that
WINDOW = 1.5  # sigmas

STATED, SIGN, UNIT, UNIT_AND_SIGN, FROM_Y = "as stated", "other sign", "other unit", "other unit and sign", "from y"

TOLERANCE = 0.05  # float16 and bytes round by less; lengths that differ on purpose spread wider


def is_inside(xy: Floats, image_size: tuple[int, int]) -> "np.ndarray[tuple[int], np.dtype[np.bool_]]":
    """Whether points (n, 2) lie on the photograph's pixels, which reach half a pixel beyond their centres."""
    return np.asarray(((xy >= -0.5) & (xy <= np.array(image_size) - 0.5)).all(axis=1))


def other_places(stated: Stated, image_size: tuple[int, int]) -> Iterator[tuple[str, str, Stated]]:
    """(fault, remedy, keypoints) of every other reading of the places: swapped, or of a smaller copy of the photo."""
    yield "x and y are swapped", "Write x (the column) first.", replace(stated, xy=stated.xy[:, ::-1])
    for side in USUAL_SIDES:
        if side != max(image_size):
            width, height = (round(side * each / max(image_size)) for each in image_size)
            grow = np.array(image_size) / (width, height)
            mean = float(np.sqrt(grow.prod()))
            sigma = None if stated.sigma is None else stated.sigma * mean
            yield (
                f"keypoints are those of a copy of {width} x {height} px",
                f"Write (x + 0.5) * {mean:.4g} - 0.5, y likewise, and the scale times {mean:.4g}.",
                replace(stated, xy=(stated.xy + 0.5) * grow - 0.5, sigma=sigma),
            )


def float16_rounding(xy: Floats) -> float | None:
    """The largest error of float16 coordinates, in pixels; None where they are finer than that."""
    with np.errstate(over="ignore"):
        halves = xy.astype(np.float16).astype(np.float64)
    is_whole = bool((xy == np.rint(xy)).all())  # whole pixels fit float16 too
    if not len(xy) or is_whole or not np.array_equal(halves, xy):
        return None
    return float(np.spacing(np.float16(np.abs(xy).max()))) / 2


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
    patches = cut_patches(image, upright_keypoints(xy, sigma), SPAN, SIDE).astype(np.float32)
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


def measure_lengths(descriptors: Floats) -> Floats:
    """The length that 5 % of the rows (n, dim), n > 0, do not reach, the median, and the one that 5 % exceed.

    Rows of zeros, as of flat patches, which have no direction, do not count unless most are.
    """
    lengths = np.linalg.norm(descriptors, axis=1)
    kept = lengths[lengths > 0] if 2 * np.count_nonzero(lengths) > len(lengths) else lengths
    return np.asarray(np.percentile(kept, [5, 50, 95]))


def are_near(lengths: Floats, expected: float) -> bool:
    return np.allclose(lengths, expected, rtol=TOLERANCE, atol=0)

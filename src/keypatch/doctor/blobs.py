"""Scale and place: under which reading of the numbers do blobs of the photograph lie at the keypoints?

Detectors of blobs (DoG, and those of the Hessian nearly so) stop where the scale-normalized Laplacian of Gaussian is
extremal in x, y and scale. So the offset from a stated keypoint to that extremum shows how its numbers are to be read.
"""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from keypatch.doctor.stated import Floats, Image, upright_keypoints
from keypatch.geometry import Keypoints, cut_patches

SIDE, SPAN = 48, 16.0  # the patches: three samples to a sigma, and room for the Laplacian of twice the scale
STEP = SPAN / SIDE  # sigmas
DOG_TO_LAPLACIAN = 2 ** (1 / 6)  # DoG's extremum lies half a layer below the Laplacian's
QUARTER_OCTAVES = (-2, -1, 0, 1, 2)  # scales probed, about that of the keypoint
DIFFERENCE = 0.25  # sigmas, for derivatives
ROUNDNESS = 0.05  # det / trace^2 of the Hessian; an edge has 0, a round blob 0.25. Lowe's ratio of 10 is 0.083

FACTORS = (1.0, 1 / 2, 2.0, 1 / 6, 1 / 12, 1 / 24)  # the true sigma over the stated one
SHIFTS = (0.0, 0.5, -0.5, 1.0, -1.0)  # pixels, in x and y
NEAR = 0.5  # sigmas from a keypoint to its blob
FEW_BLOBS = 0.3  # of the keypoints: where fewer are blobs, the support is not counted among these few
SCANNED = 200  # keypoints, about, to choose a reading by; all of them measure what remains
LADDER = 2 ** (np.arange(9) / 2)  # sigmas tried for keypoints without scales, in pixels


@dataclass(frozen=True, eq=False)
class Probe:
    """Of every keypoint: is there a blob, and how far away."""

    blob: NDArray[np.bool_]  # (n,) curved to both sides, so not an edge
    offset: Floats  # (n, 2) to the extremum in x and y, in sigmas, by one Newton step; nan where there is no blob
    octaves: Floats  # (n,) to the extremum in scale; nan if there is none within 3/8 of an octave
    strength: Floats  # (n,) of the Laplacian


def probe(image: Image, keypoints: Keypoints) -> Probe:
    """Cut patches at the keypoints, which are upright, and look for the nearest extremum."""
    patches = cut_patches(image, keypoints, SPAN, SIDE).reshape(-1, SIDE * SIDE).astype(np.float32)
    responses = (patches @ _ladder().T).astype(np.float64)  # (n, 5)
    derivatives = (patches @ _derivatives().T).astype(np.float64)  # (n, 5)
    blob, offset = _newton(derivatives)
    strength = np.abs(responses)
    return Probe(blob, offset, _peak(strength), strength[:, 2])


def _newton(derivatives: Floats) -> tuple[NDArray[np.bool_], Floats]:
    gx, gy, hxx, hyy, hxy = derivatives.T
    determinant = hxx * hyy - hxy**2
    blob = determinant > ROUNDNESS * (hxx + hyy) ** 2
    safe = np.where(blob, determinant, np.nan)
    return blob, np.stack([(hxy * gy - hyy * gx) / safe, (hxy * gx - hxx * gy) / safe], axis=1)


def _peak(strength: Floats) -> Floats:
    """Octaves from the middle to the largest of the three inner values if it is a local maximum, by a parabola."""
    rows = np.arange(len(strength))
    inner = 1 + np.argmax(strength[:, 1:-1], axis=1)
    before, top, after = (strength[rows, inner + step] for step in (-1, 0, 1))
    bend = before - 2 * top + after
    found = (top > before) & (top >= after) & (bend < 0)
    place = inner - 2 + 0.5 * (before - after) / np.where(found, bend, np.nan)
    return np.asarray(place / 4)


@cache
def _ladder() -> NDArray[np.float32]:
    """(5, pixels): the Laplacian at the scales probed."""
    return np.stack([_laplacian(2 ** (step / 4)) for step in QUARTER_OCTAVES]).astype(np.float32)


@cache
def _derivatives() -> NDArray[np.float32]:
    """(5, pixels): the Laplacian's derivatives x, y, xx, yy, xy in the keypoint's place, per sigma."""
    h = DIFFERENCE
    middle, right, left, down, up = (
        _laplacian(1.0, x, y) for x, y in ((0.0, 0.0), (h, 0.0), (-h, 0.0), (0.0, h), (0.0, -h))
    )
    corners = _laplacian(1.0, h, h) - _laplacian(1.0, -h, h) - _laplacian(1.0, h, -h) + _laplacian(1.0, -h, -h)
    first = [(right - left) / (2 * h), (down - up) / (2 * h)]
    second = [(right + left - 2 * middle) / h**2, (down + up - 2 * middle) / h**2, corners / (4 * h**2)]
    return np.stack([*first, *second]).astype(np.float32)


def _laplacian(scale: float, x: float = 0.0, y: float = 0.0) -> Floats:
    """The scale-normalized Laplacian of Gaussian of `scale` DoG sigmas around (x, y), as a patch without mean."""
    samples = (np.arange(SIDE) - (SIDE - 1) / 2) * STEP
    columns, rows = np.meshgrid(samples - x, samples - y)
    sigma = scale * DOG_TO_LAPLACIAN
    radius = (columns**2 + rows**2) / (2 * sigma**2)
    values = (radius - 1) * np.exp(-radius) / (math.pi * sigma**2) * STEP**2
    return np.asarray(values - values.mean()).ravel()


@dataclass(frozen=True)
class BlobEvidence:
    """The reading under which most keypoints have a blob at their place and scale, and what remains under it."""

    factor: float  # of the stated sigma
    support: float  # share of the blobs that lie within NEAR and have their scale there; about 0.1 by chance
    stated_support: float  # the same with the sigmas as they are stated
    blobs: int  # how many fit
    scale: float  # median scale of these blobs over the stated sigma
    bias: tuple[float, float]  # stated place minus blob: median in x and in y, pixels
    spread: float  # the larger quartile distance of the single biases
    error: float  # of the median, one standard deviation


def find_blobs(image: Image, xy: Floats, sigma: Floats) -> BlobEvidence:
    """Cut patches under every reading of scale and place, keep the best one and refine its place."""
    few = slice(None, None, max(1, len(xy) // SCANNED))
    supports = {
        (factor, shift): _support(probe(image, upright_keypoints(xy[few] + shift, sigma[few] * factor)))
        for factor in FACTORS
        for shift in SHIFTS
    }
    factor, shift = max(supports, key=lambda reading: supports[reading])
    stated = max(supports[1.0, each] for each in SHIFTS)
    return _refined(image, xy, sigma, factor, np.full(2, shift), stated)


def find_blobs_without_scales(image: Image, xy: Floats) -> BlobEvidence:
    """The same where only places are stated: each keypoint takes the scale of its strongest blob."""
    moved = np.zeros(2)
    for _ in range(3):  # small blobs come into reach once a bias is known
        probes = [probe(image, upright_keypoints(xy + moved, np.full(len(xy), sigma))) for sigma in LADDER]
        strength = np.stack([np.where(_fits(each, 2 * NEAR), each.strength, 0.0) for each in probes])  # (9, n)
        kept = strength.max(axis=0, initial=0) > 0
        sigma = LADDER[np.argmax(strength, axis=0)]
        found = _refined(image, xy[kept], sigma[kept], 1.0, moved, 0.0)
        moved = -np.array(found.bias)
    return found


def quick_support(image: Image, xy: Floats, sigma: Floats) -> float:
    """The support of the keypoints as stated, or with diameters for scales."""
    few = slice(None, None, max(1, len(xy) // SCANNED))
    return max(_support(probe(image, upright_keypoints(xy[few], sigma[few] * factor))) for factor in FACTORS[:2])


def _refined(image: Image, xy: Floats, sigma: Floats, factor: float, moved: Floats, stated: float) -> BlobEvidence:
    for _ in range(3):
        found = probe(image, upright_keypoints(xy + moved, sigma * factor))
        fits = _fits(found)
        offsets = found.offset[fits] * (sigma * factor)[fits, None]
        if not len(offsets):
            return BlobEvidence(factor, 0.0, stated, 0, float("nan"), (0.0, 0.0), float("inf"), float("inf"))
        moved = moved + np.median(offsets, axis=0)
    spread = float(np.subtract(*np.percentile(offsets, [75, 25], axis=0)).max())
    return BlobEvidence(
        factor,
        _support(found),
        stated,
        len(offsets),
        factor * float(2 ** np.median(found.octaves[fits])),
        (-float(moved[0]), -float(moved[1])),
        spread,
        0.93 * spread / float(np.sqrt(len(offsets))),  # of a median of normally distributed values
    )


def _fits(found: Probe, near: float = NEAR) -> NDArray[np.bool_]:
    distance = np.hypot(*found.offset.T)
    return np.asarray(found.blob & (distance < near) & np.isfinite(found.octaves))


def _support(found: Probe) -> float:
    return float(_fits(found).sum() / max(found.blob.sum(), FEW_BLOBS * len(found.blob), 1))

"""Scale and place: under which reading of the numbers do blobs of the photograph lie at the keypoints?"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keypatch.doctor.probing import Probe, probe
from keypatch.doctor.stated import Floats, upright

FACTORS = (1.0, 1 / 2, 2.0, 1 / 6, 1 / 12, 1 / 24)  # the true sigma over the stated one
SHIFTS = (0.0, 0.5, -0.5, 1.0, -1.0)  # pixels, in x and y
NEAR = 0.5  # sigmas from a keypoint to its blob
FEW_BLOBS = 0.3  # of the keypoints: where fewer are blobs, the support is not counted among these few
SCANNED = 200  # keypoints, about, to choose a reading by; all of them measure what remains
LADDER = 2 ** (np.arange(9) / 2)  # sigmas tried for keypoints without scales, in pixels

Image = NDArray[np.uint8]


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
        (factor, shift): _support(probe(image, upright(xy[few] + shift, sigma[few] * factor)))
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
        probes = [probe(image, upright(xy + moved, np.full(len(xy), sigma))) for sigma in LADDER]
        strength = np.stack([np.where(_fits(each, 2 * NEAR), each.strength, 0.0) for each in probes])  # (9, n)
        kept = strength.max(axis=0, initial=0) > 0
        sigma = LADDER[np.argmax(strength, axis=0)]
        found = _refined(image, xy[kept], sigma[kept], 1.0, moved, 0.0)
        moved = -np.array(found.bias)
    return found


def quick_support(image: Image, xy: Floats, sigma: Floats) -> float:
    """The support of the keypoints as stated, or with diameters for scales."""
    few = slice(None, None, max(1, len(xy) // SCANNED))
    return max(_support(probe(image, upright(xy[few], sigma[few] * factor))) for factor in FACTORS[:2])


def _refined(image: Image, xy: Floats, sigma: Floats, factor: float, moved: Floats, stated: float) -> BlobEvidence:
    for _ in range(3):
        found = probe(image, upright(xy + moved, sigma * factor))
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

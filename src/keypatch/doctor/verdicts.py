"""From what was measured to a sentence about stated keypoints: fine, at fault and what to do, or cannot tell."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from keypatch.doctor.blobs import BlobEvidence, find_blobs, find_blobs_without_scales, quick_support
from keypatch.doctor.evidence import (
    FROM_Y,
    SIGN,
    STATED,
    UNIT,
    UNIT_AND_SIGN,
    Fit,
    are_near,
    fit_angles,
    float16_rounding,
    is_inside,
    measure_lengths,
    other_places,
)
from keypatch.doctor.stated import Floats, Image, Stated, Unit

FEWEST, MOST = 30, 500  # keypoints looked at

FINE, CANNOT_TELL = "fine", "cannot tell"

# Measured on six photos: detectors of blobs have a support of 0.78 and more under the right reading, everything else
# (wrong readings, corners, random places) at most 0.34; without scales, where each keypoint chooses the best one, 0.83
# and 0.73; angles of gradients have a lift of 0.38 and more, wrong ones at most 0.25.
ENOUGH_SUPPORT, ENOUGH_SUPPORT_WITHOUT_SCALES = 0.5, 0.8
ENOUGH_BLOBS, MOST_SPREAD = 20, 0.75  # keypoints; pixels
ENOUGH_LIFT, LEAD = 0.3, 0.1
LARGEST_BIAS, SIGNIFICANT = 0.12, 4.0  # pixels (right files: 0.03 at most); in standard errors
MOST_OUTSIDE = 0.01  # of the keypoints: a detector may step over the border
SNAP = 0.1  # pixels to one of the usual biases

SCALES = {
    1 / 2: ("scale is a diameter", "OpenCV's KeyPoint.size is 2 sigma: halve the scales."),
    2.0: ("scale is half of sigma", "Double the scales."),
    1 / 6: ("scale is 6 sigma", "That is half the side of a patch, as in kornia's frames: divide by 6."),
    1 / 12: ("scale is 12 sigma", "That is the side of a patch: divide by 12."),
    1 / 24: ("scale is 24 sigma", "That is the side of a patch: divide by 24."),
}
HINTS = {
    0.25: "OpenCV's and scikit-image's SIFT have this bias; in OpenCV, enable_precise_upscale=True removes it.",
    0.5: "COLMAP counts from the corner of the first pixel, OpenCV, kornia and hloc from its centre.",
    1.0: "The half pixel between COLMAP's corner and OpenCV's centre was applied twice, the wrong way.",
}


@dataclass(frozen=True)
class Finding:
    """What was found out about one thing."""

    subject: str  # places, scale, centres, orientation, descriptors
    verdict: str  # fine, cannot tell, or the fault
    evidence: str  # the numbers it rests on
    remedy: str = ""

    @property
    def is_fault(self) -> bool:
        return self.verdict not in (FINE, CANNOT_TELL)


def judge(image: Image, stated: Stated) -> list[Finding]:
    """Everything that can be found out, faults and the rest."""
    if not len(stated):
        return [Finding("keypoints", CANNOT_TELL, "there are no keypoints of this photo")]
    findings = _judge_keypoints(image, stated)
    inside, rounding = judge_places(stated.xy, (image.shape[1], image.shape[0])), judge_rounding(stated.xy)
    if all(finding.subject != "places" for finding in findings) and (inside.is_fault or not rounding):
        findings = [inside, *findings]
    return [*findings, *([rounding] if rounding else []), judge_descriptors(stated)]


def _judge_keypoints(image: Image, stated: Stated) -> list[Finding]:
    size = image.shape[1], image.shape[0]
    chosen = _sample(stated.take(is_inside(stated.xy, size)))
    if len(chosen) >= FEWEST:
        blobs = _blobs(image, chosen)
        if blobs.support >= ENOUGH_SUPPORT:
            return _judge_frames(image, chosen, blobs)
    for fault, remedy, other in other_places(_sample(stated), size):
        inside = other.take(is_inside(other.xy, size))
        if inside.sigma is not None and len(inside) >= max(FEWEST, 0.9 * len(other)):
            support = quick_support(image, inside.xy, inside.sigma)
            if support >= ENOUGH_SUPPORT:
                evidence = f"read this way, {support:.0%} of the blobs at keypoints have the stated scale"
                found = Finding("places", fault, evidence, remedy)
                return [found, *_judge_frames(image, inside, _blobs(image, inside))]
    if len(chosen) < FEWEST:
        few = f"{len(chosen)} keypoints in the photo are too few; {FEWEST} are needed"
        return [Finding("keypoints", CANNOT_TELL, few)]
    return _judge_frames(image, chosen, blobs)


def _judge_frames(image: Image, stated: Stated, blobs: BlobEvidence) -> list[Finding]:
    """Scale and centres by the blobs, then the angles at the keypoints read as those two demand."""
    if stated.sigma is None:
        return [judge_centres(blobs, ENOUGH_SUPPORT_WITHOUT_SCALES)]
    scale, centres = judge_scale(blobs), judge_centres(blobs)
    if stated.angle is None:
        return [scale, centres, Finding("orientation", CANNOT_TELL, "the file has no angles")]
    if np.ptp(stated.angle) == 0:
        return [scale, centres, Finding("orientation", CANNOT_TELL, f"all angles are {stated.angle[0]:g}: upright")]
    sigma = stated.sigma * (blobs.factor if scale.is_fault else 1)
    xy = stated.xy - (blobs.bias if centres.is_fault else 0)
    return [scale, centres, *judge_angles(fit_angles(image, xy, sigma, stated.angle, stated.unit), stated.unit)]


def _blobs(image: Image, stated: Stated) -> BlobEvidence:
    if stated.sigma is None:
        return find_blobs_without_scales(image, stated.xy)
    return find_blobs(image, stated.xy, stated.sigma)


def _sample(stated: Stated) -> Stated:
    """At most MOST keypoints, the same in every run."""
    order = np.random.default_rng(0).permutation(len(stated))
    return stated.take(np.sort(order[:MOST]))


def judge_places(xy: Floats, image_size: tuple[int, int]) -> Finding:
    outside, (width, height) = int(np.sum(~is_inside(xy, image_size))), image_size
    evidence = f"{outside} of {len(xy)} keypoints lie outside the photo of {width} x {height} pixels"
    if outside <= MOST_OUTSIDE * len(xy):
        return Finding("places", FINE, evidence)
    remedy = "They belong to another photo or another size of this one, or x and y are swapped."
    return Finding("places", "keypoints lie outside the image", evidence, remedy)


def judge_rounding(xy: Floats) -> Finding | None:
    """Only where there is something to say."""
    rounding = float16_rounding(xy)
    if rounding is None or rounding < LARGEST_BIAS:
        return None
    evidence = f"every coordinate is a float16, rounded by up to {rounding:g} px in a photo of this size"
    return Finding("places", "coordinates are float16", evidence, "Write float32 (hloc: as_half=False).")


def judge_scale(blobs: BlobEvidence) -> Finding:
    if not _is_enough(blobs):
        return Finding("scale", CANNOT_TELL, _weak(blobs))
    times = "" if blobs.factor == 1 else f"{blobs.factor:.2g} of "
    evidence = (
        f"{blobs.support:.0%} of the blobs at keypoints have {times}the stated scale ({blobs.blobs} blobs, median "
        f"{blobs.scale:.2f} of it)"
    )
    if blobs.factor == 1:
        return Finding("scale", FINE, evidence)
    verdict, remedy = SCALES[blobs.factor]
    return Finding("scale", verdict, f"{evidence}, {blobs.stated_support:.0%} the stated one", remedy)


def judge_centres(blobs: BlobEvidence, enough: float = ENOUGH_SUPPORT) -> Finding:
    if not _is_enough(blobs, enough) or blobs.spread > MOST_SPREAD:
        return Finding("centres", CANNOT_TELL, _weak(blobs))
    x, y = blobs.bias
    evidence = f"the keypoints lie ({x:+.2f}, {y:+.2f}) px from their {blobs.blobs} blobs, +-{blobs.error:.2f}"
    return judge_bias(x, y, evidence, SIGNIFICANT * blobs.error)


def judge_bias(x: float, y: float, evidence: str, uncertain: float = 0.0) -> Finding:
    """Centres that lie (x, y) pixels beside the truth; a bias below `uncertain` may be chance."""
    size = max(abs(x), abs(y))
    if math.isnan(size):
        return Finding("centres", CANNOT_TELL, "too few keypoints were found again")
    if size < max(LARGEST_BIAS, uncertain):
        return Finding("centres", FINE, evidence)
    usual = next((each for each in HINTS if x * y > 0 and all(abs(abs(v) - each) < SNAP for v in (x, y))), None)
    if usual is None:
        return Finding(
            "centres", f"centres are off by {size:.2f} px", evidence, f"Add ({-x:.2f}, {-y:.2f}) to x and y."
        )
    change = f"{'Subtract' if x > 0 else 'Add'} {usual:g} {'from' if x > 0 else 'to'} x and y."
    return Finding("centres", f"centres are off by {usual:g} px", evidence, f"{HINTS[usual]} {change}")


def judge_angles(fits: Mapping[str, Fit], unit: Unit) -> list[Finding]:
    """One finding, or two where both sign and unit are wrong."""
    best = max(fits, key=lambda reading: fits[reading].lift)
    shown = f"as stated the angles reach {_height(fits[STATED])}"
    if fits[STATED].lift >= max(ENOUGH_LIFT, fits[best].lift - LEAD):
        return [Finding("orientation", FINE, shown)]
    if fits[best].lift < max(ENOUGH_LIFT, fits[STATED].lift + LEAD):
        return [Finding("orientation", CANNOT_TELL, f"{shown}, and no other reading fits clearly better")]
    evidence = f"{shown}; with {best} {_height(fits[best])}"
    other = "radians" if unit == "degrees" else "degrees"
    faults = list[Finding]()
    if best in (UNIT, UNIT_AND_SIGN):
        faults.append(Finding("orientation", f"angles are {other}", evidence, f"Write them in {unit}."))
    if best in (SIGN, UNIT_AND_SIGN):
        remedy = "Angles go clockwise on screen, from x towards y (kornia's go the other way): negate them."
        faults.append(Finding("orientation", "orientation sign is wrong", evidence, remedy))
    if best == FROM_Y:
        remedy = "Write 90 degrees minus the angle (scikit-image measures from the rows' axis)."
        faults.append(Finding("orientation", "angles are measured from the y axis", evidence, remedy))
    return faults


def judge_descriptors(stated: Stated) -> Finding:
    if stated.descriptors is None:
        return Finding("descriptors", CANNOT_TELL, "there are none for this photo")
    if stated.transposed:
        remedy = "hloc's files hold one descriptor per column: write the transposed array."
        return Finding("descriptors", "descriptors are transposed", "one row per keypoint, not one column", remedy)
    lengths = measure_lengths(stated.descriptors)
    evidence = "length {1:.4g} (middle 90 %: {0:.4g} to {2:.4g})".format(*lengths)
    if are_near(lengths, stated.length or 1.0):
        return Finding("descriptors", FINE, evidence)
    if lengths[1] == 0:
        remedy = "Floats cast to bytes become 0: scale them to length 512 first."
        return Finding("descriptors", "descriptors are not normalized", "most are all zero", remedy)
    if stated.length is None:
        meant = "not 1, which some descriptors intend (TFeat's): compare them by Euclidean distance"
        return Finding("descriptors", CANNOT_TELL, f"{evidence}, {meant}")
    expected = f"{evidence}, where {stated.length:g} is expected"
    return Finding("descriptors", "descriptors are not normalized", expected, "Divide each by its Euclidean length.")


def _is_enough(blobs: BlobEvidence, support: float = ENOUGH_SUPPORT) -> bool:
    return blobs.support >= support and blobs.blobs >= ENOUGH_BLOBS


def _weak(blobs: BlobEvidence) -> str:
    return (
        f"too few blobs lie at the keypoints ({blobs.blobs}, {blobs.support:.0%} of those nearby): they are corners, "
        "from another photo, or too few"
    )


def _height(fit: Fit) -> str:
    return f"{fit.height:.2f} of the gradients' peak ({fit.chance:.2f} by chance)"

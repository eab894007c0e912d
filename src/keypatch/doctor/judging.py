"""The keypoints a file states, judged against the photograph they are said to be of."""

import numpy as np
from numpy.typing import NDArray

from keypatch.doctor.evidence_angles import fit_angles
from keypatch.doctor.evidence_blobs import BlobEvidence, find_blobs, find_blobs_without_scales, quick_support
from keypatch.doctor.evidence_descriptors import measure_lengths
from keypatch.doctor.evidence_places import is_inside, look_at_places, other_places
from keypatch.doctor.stated import Stated
from keypatch.doctor.verdicts import (
    CANNOT_TELL,
    ENOUGH_SUPPORT,
    ENOUGH_SUPPORT_WITHOUT_SCALES,
    Finding,
    cannot_tell,
    judge_angles,
    judge_centres,
    judge_descriptors,
    judge_places,
    judge_rounding,
    judge_scale,
)

FEWEST, MOST = 30, 500  # keypoints looked at

Image = NDArray[np.uint8]


def judge(image: Image, stated: Stated) -> list[Finding]:
    """Everything that can be found out, faults and the rest."""
    if not len(stated):
        return [cannot_tell("there are no keypoints of this photo")]
    places = look_at_places(stated.xy, (image.shape[1], image.shape[0]))
    findings = _judge_keypoints(image, stated)
    inside, rounding = judge_places(places), judge_rounding(places)
    if all(finding.subject != "places" for finding in findings) and (inside.is_fault or not rounding):
        findings = [inside, *findings]
    findings += [rounding] if rounding else []
    if stated.descriptors is None:
        return [*findings, Finding("descriptors", CANNOT_TELL, "there are none of this photo")]
    return [*findings, judge_descriptors(measure_lengths(stated.descriptors, stated.length, stated.transposed))]


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
                evidence = f"read so, {support:.0%} of the blobs at keypoints have the stated scale"
                found = Finding("places", fault, evidence, remedy)
                return [found, *_judge_frames(image, inside, _blobs(image, inside))]
    if len(chosen) < FEWEST:
        return [cannot_tell(f"{len(chosen)} keypoints in the photo are too few; {FEWEST} are needed")]
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

"""Photographs turned in steps of 15 degrees: of the keypoints found again, how many are matched correctly?"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.result import Result, provenance_of
from keypatch.describers.protocol import Describer, Progress
from keypatch.doctor.changes import turn
from keypatch.doctor.counting import Count, SameFrame, count
from keypatch.errors import DataError
from keypatch.features import Extraction, extract, find_photos, read_photo
from keypatch.matching.neighbours import match_descriptors
from keypatch.metrics import Curve

STEPS = tuple(range(15, 360, 15))  # degrees clockwise
SAME = SameFrame(pixels=3.0, octaves=0.25, degrees=15.0)


def evaluate_rotation(
    describer: Describer,
    photos: Sequence[str | Path],
    extraction: Extraction | None = None,
    progress: Progress | None = None,
) -> Result:
    """The share of keypoints matched correctly in photographs (images, folders or lists) turned by `STEPS`.

    A keypoint is found again if the turned photograph has one with the same frame: within 3 pixels, a quarter octave
    and 15 degrees of where the turn carries it. It is matched correctly if its mutual nearest neighbour among all
    keypoints is one of these. Scores: "share.<degrees>", the mean over photographs; "share", the mean of all;
    "lowest", the lowest of any photograph and step; "found_again", the mean share of keypoints found again. A curve
    "share.<photograph>" over the degrees for each.
    """
    found = find_photos(photos)
    images = {photo.name: read_photo(photo.path) for photo in found}
    chosen = extraction or Extraction()
    counts = dict[str, list[Count]]()
    for number, (name, image) in enumerate(images.items()):
        counts[name] = count_turned(image, describer, chosen, name)
        if progress is not None:
            progress(number + 1, len(images))
    shares = np.array([[each.share for each in row] for row in counts.values()])  # (photographs, steps)
    again = np.array([[each.found_again / each.keypoints for each in row] for row in counts.values()])
    return Result(
        benchmark="rotation",
        descriptor=describer.name,
        settings={"data": ", ".join(images), **asdict(SAME), **chosen.settings(describer)},
        scores={
            "share": float(shares.mean()),
            "lowest": float(shares.min()),
            "found_again": float(again.mean()),
            **{f"share.{degrees:03}": float(mean) for degrees, mean in zip(STEPS, shares.mean(axis=0), strict=True)},
        },
        curves={f"share.{name}": Curve(np.array(STEPS), row) for name, row in zip(counts, shares, strict=True)},
        provenance=provenance_of(describer, _hash(list(images.values()))),
    )


def count_turned(
    image: NDArray[np.uint8], describer: Describer, extraction: Extraction, name: str = "the photo"
) -> list[Count]:
    """What became of the keypoints of a grey photograph (h, w) at each of the steps."""
    upright = extract(image, describer, extraction)
    counts = []
    for degrees in STEPS:
        turned, homography = turn(image, degrees)
        features = extract(turned, describer, extraction)
        matches = match_descriptors(upright.descriptors, features.descriptors)
        counts.append(count(upright.keypoints, features.keypoints, homography, matches.indices, SAME))
        if not counts[-1].found_again:
            raise DataError(
                f"No keypoint of {name} was found again when it was turned by {degrees} degrees. "
                "Choose a photo with more texture."
            )
    return counts


def _hash(images: Sequence[NDArray[np.uint8]]) -> str:
    digest = hashlib.sha256()
    for image in images:
        digest.update(np.array(image.shape, np.int64).tobytes() + image.tobytes())
    return digest.hexdigest()

"""Two photographs of a plane: which matches are right, how good a homography they give, and a picture of them."""

from dataclasses import dataclass
from io import BytesIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks.planar_sequences import Matrix
from keypatch.features import Features
from keypatch.matching.drawing import draw_matches
from keypatch.matching.judging import transfer_errors
from keypatch.matching.matches import Matches
from keypatch.matching.verifying import Estimator, verify
from keypatch.metrics import corner_error, share_within

WITHIN = tuple(range(1, 11))  # pixels: matches that are right
RIGHT = 3  # pixels: of those that are counted, and drawn in green
LINES, WIDTH, COLOURS = 100, 900, 48  # of a picture: legible, and some 150 kB


@dataclass(frozen=True)
class PairScore:
    """What the matches of two photographs are worth."""

    keypoints: float  # mean of both
    matches: int
    right: int  # matches within RIGHT
    within: tuple[float, ...]  # share of the matches within each of WITHIN; 0 without matches
    corner_errors: tuple[float, ...]  # pixels, by seed of the estimator; inf if no homography was found


def score_pair(
    first: Features,
    second: Features,
    matches: Matches,
    homography: Matrix,
    seeds: tuple[int, ...],
    estimator: Estimator = "magsac",
    threshold: float = 1.0,
) -> PairScore:
    """The matches of two photographs against the homography that leads from the first to the second."""
    errors = match_errors(first, second, matches, homography)
    estimates = [
        verify(matches, first.keypoints, second.keypoints, "H", estimator, threshold, seed=seed).matrix
        for seed in seeds
    ]
    return PairScore(
        keypoints=(len(first) + len(second)) / 2,
        matches=len(matches),
        right=int(np.sum(errors <= RIGHT)),
        within=tuple(share_within(errors, WITHIN)) if len(errors) else (0.0,) * len(WITHIN),
        corner_errors=tuple(corner_error(estimate, homography, first.image_size) for estimate in estimates),
    )


def match_errors(first: Features, second: Features, matches: Matches, homography: Matrix) -> NDArray[np.float64]:
    """(m,) pixels in the second photograph from where the homography takes the first point; inf beyond its horizon."""
    here, there = first.keypoints.xy[matches.indices[:, 0]], second.keypoints.xy[matches.indices[:, 1]]
    return transfer_errors(homography, here, there)


def draw_pair(
    photos: tuple[NDArray[np.uint8], NDArray[np.uint8]],
    features: tuple[Features, Features],
    matches: Matches,
    homography: Matrix,
    caption: str,
) -> bytes:
    """A small PNG of the matches, right ones green and wrong ones red."""
    right = match_errors(*features, matches, homography) <= RIGHT
    keypoints = features[0].keypoints, features[1].keypoints
    picture = draw_matches(photos, keypoints, matches, caption, right, LINES)
    picture.thumbnail((WIDTH, WIDTH), Image.Resampling.LANCZOS)
    content = BytesIO()
    picture.quantize(COLOURS).save(content, "PNG", optimize=True)
    return content.getvalue()

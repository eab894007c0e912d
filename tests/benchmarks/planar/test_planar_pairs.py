"""Two photographs of a plane: which matches are right, what is a failure, what is drawn."""

from io import BytesIO

import cv2
import numpy as np
import pytest
import skimage.data
from numpy.typing import NDArray
from PIL import Image

from keypatch.benchmarks.planar.homography import PairScore, draw_pair, score_pair
from keypatch.detection import Dog
from keypatch.features import Extraction, Features, extract
from keypatch.geometry import Keypoints, apply_homography
from keypatch.matching.matches import Matches
from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors
from keypatch.zoo import load

TILT = np.array([[1.1, 0.2, 5.0], [-0.1, 0.9, 8.0], [1e-4, -2e-4, 1.0]])
SIZE = (400, 300)


def features(xy: NDArray[np.float64]) -> Features:
    ones = np.ones(len(xy), np.float32)
    return Features(Keypoints(xy[:, 0], xy[:, 1], ones, 0 * ones), np.zeros((len(xy), 1), np.float32), SIZE, "toy")


def one_to_one(count: int) -> Matches:
    return Matches(np.repeat(np.arange(count), 2).reshape(-1, 2), np.ones(count))


def scattered(count: int) -> NDArray[np.float64]:
    return np.random.default_rng(0).uniform((10, 10), (390, 290), (count, 2))


def moved(xy: NDArray[np.float64], by: list[float]) -> NDArray[np.float64]:
    """The true places in the second photo, each moved by some pixels along x."""
    return apply_homography(TILT, xy) + np.stack([by, np.zeros(len(by))], axis=1)


def scored(here: NDArray[np.float64], there: NDArray[np.float64], homography: NDArray[np.float64] = TILT) -> PairScore:
    return score_pair(features(here), features(there), one_to_one(len(here)), homography, (0, 1))


def test_a_match_is_right_within_so_many_pixels_of_where_the_homography_takes_its_first_point() -> None:
    here = scattered(6)
    pair = scored(here, moved(here, [0, 0.9, 1.1, 2.9, 3.1, 50]))
    assert pair.within == (2 / 6, 3 / 6, 4 / 6, 5 / 6, 5 / 6, 5 / 6, 5 / 6, 5 / 6, 5 / 6, 5 / 6)
    assert (pair.matches, pair.right, pair.keypoints) == (6, 4, 6)


def test_exactly_so_many_pixels_are_still_right() -> None:
    zoom = np.diag([2.0, 2.0, 1.0])
    here = np.array([[10.0, 10.0], [20.0, 30.0], [40.0, 50.0]])
    there = 2 * here + [[1, 0], [0, 3], [6, 8]]  # whole numbers: errors of 1, 3 and 10 without rounding
    third = 1 / 3
    assert scored(here, there, zoom).within == (third, third, *[2 / 3] * 7, 1)


def test_the_distance_is_that_in_the_second_photo() -> None:
    zoom = np.diag([4.0, 4.0, 1.0])
    here = scattered(8)
    there = apply_homography(zoom, here) + np.array([2.5, 0])  # less than a pixel in the first photo
    assert scored(here, there, zoom).within == (0, 0, *[1] * 8)


def test_points_that_leave_the_photo_are_not_excused_and_those_on_the_horizon_are_wrong() -> None:
    shift = np.array([[1, 0, -350.0], [0, 1, 0], [0, 0, 1]])
    here = np.array([[10.0, 20.0], [380.0, 40.0]])  # the first goes to x = -340
    assert scored(here, np.array([[5.0, 20.0], [30.0, 40.0]]), shift).within == (0.5,) * 10
    horizon = np.array([[1, 0, 0], [0, 1, 0], [-0.1, 0, 1.0]])  # x = 10
    assert scored(here, np.array([[5.0, 20.0], [380 / -37, 40 / -37]]), horizon).within == (0.5,) * 10


def test_a_homography_is_found_among_wrong_matches_and_measured_at_the_corners() -> None:
    here = scattered(200)
    there = moved(here, [0] * 200)
    there[100:] = np.random.default_rng(1).permutation(there[100:])
    assert scored(here, there).corner_errors[0] < 0.1
    shifted = np.array([[1, 0, 4.0], [0, 1, 0], [0, 0, 1]]) @ TILT
    assert scored(here, there, shifted).corner_errors == pytest.approx([4, 4], abs=0.1)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_too_few_matches_are_a_failure_and_no_error(count: int) -> None:
    here = scattered(count)
    pair = scored(here, moved(here, [0] * count))
    assert pair.corner_errors == (float("inf"),) * 2
    assert pair.within == ((1,) * 10 if count else (0,) * 10)


def test_a_warped_photo_is_matched_back_and_its_picture_shows_right_and_wrong_matches() -> None:
    photo = skimage.data.camera()
    warped = np.asarray(cv2.warpPerspective(photo, TILT, photo.shape[::-1]))
    first, second = (extract(image, load("rootsift"), Extraction(Dog(), 500)) for image in (photo, warped))
    matches = match_descriptors(first.descriptors, second.descriptors, Matching(ratio=None))
    pair = score_pair(first, second, matches, TILT, (0,))
    assert pair.within[2] > 0.6
    assert pair.corner_errors[0] < 1
    for homography, colour in ((TILT, "green"), (np.diag([1.0, -1.0, 1.0]), "red")):
        png = draw_pair((photo, warped), (first, second), matches, homography, "a caption")
        assert len(png) < 300_000
        red, green, _ = np.moveaxis(np.asarray(Image.open(BytesIO(png)).convert("RGB")).astype(int), 2, 0)
        greens, reds = int((green > red + 40).sum()), int((red > green + 40).sum())
        assert (greens > reds) == (colour == "green")

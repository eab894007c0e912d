"""Homographies: points, keypoints, and the patches they give in another view."""

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keypatch.errors import KeypatchError
from keypatch.geometry import (
    Keypoints,
    ViewRange,
    apply_homography,
    cut_patches,
    random_homography,
    transform_keypoints,
)

SIZE = (320, 240)
seeds = st.integers(0, 10_000)


def a_view(seed):
    return random_homography(np.random.default_rng(seed), SIZE, ViewRange())


@given(seeds)
def test_points_go_where_opencv_sends_them_and_back(seed):
    homography = a_view(seed).homography
    points = np.random.default_rng(seed).uniform(0, 240, (5, 2))
    carried = apply_homography(homography, points)
    np.testing.assert_allclose(carried, cv2.perspectiveTransform(points[None], homography)[0], atol=1e-9)
    np.testing.assert_allclose(apply_homography(np.linalg.inv(homography), carried), points, atol=1e-6)


@given(seeds)
def test_frames_follow_the_derivative(seed):
    """A small step along a frame's axes lands where the carried frame says."""
    homography = a_view(seed).homography
    keypoint = Keypoints([100], [80], [3], [0.7])
    carried = transform_keypoints(homography, keypoint)
    for axis in np.eye(2):
        step = 1e-3 * keypoint.frames()[0] @ axis
        moved = apply_homography(homography, keypoint.xy + step) - apply_homography(homography, keypoint.xy)
        np.testing.assert_allclose(moved[0] / 1e-3, carried.frames()[0] @ axis, atol=0.01)


def test_patch_looks_the_same_in_another_view():
    rng = np.random.default_rng(0)
    photo = cv2.GaussianBlur(rng.uniform(0, 255, SIZE[::-1]).astype(np.float32), (0, 0), 3)
    photo = cv2.normalize(photo, None, 0, 255, cv2.NORM_MINMAX)
    keypoints = Keypoints([100, 160, 220], [80, 120, 150], [2, 3, 2.5], [0.5, -1, 3])
    before = cut_patches(photo, keypoints).astype(float)
    for seed in range(5):
        view = a_view(seed)
        seen = cv2.warpPerspective(photo, view.homography, view.size, flags=cv2.INTER_CUBIC)
        after = cut_patches(seen, transform_keypoints(view.homography, keypoints)).astype(float)
        for first, second in zip(before, after, strict=True):
            assert np.corrcoef(first.ravel(), second.ravel())[0, 1] > 0.97


@given(seeds)
def test_a_view_holds_the_whole_photograph(seed):
    view = a_view(seed)
    edges = [[-0.5, -0.5], [319.5, -0.5], [319.5, 239.5], [-0.5, 239.5]]
    corners = apply_homography(view.homography, edges)
    np.testing.assert_allclose(corners.min(axis=0), -0.5, atol=1e-6)
    assert np.all(corners.max(axis=0) <= np.array(view.size) - 0.5 + 1e-6)


def test_views_are_determined_by_the_generator():
    np.testing.assert_array_equal(a_view(3).homography, a_view(3).homography)
    assert not np.array_equal(a_view(3).homography, a_view(4).homography)


def test_nothing_and_one_point():
    assert apply_homography(np.eye(3), np.empty((0, 2))).shape == (0, 2)
    assert len(transform_keypoints(np.eye(3), Keypoints([], [], [], []))) == 0
    assert apply_homography(np.eye(3), [1, 2]).tolist() == [[1, 2]]


def test_response_is_kept():
    carried = transform_keypoints(np.diag([2, 2, 1]), Keypoints([1], [2], [3], [0.5], response=[0.25]))
    assert (carried.x, carried.y, carried.sigma, carried.response) == (2, 4, 6, 0.25)
    assert carried.angle == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("homography", "sentence"),
    [
        ([[1, 0, 0], [0, 1, 0], [-1, 0, 1]], "horizon"),
        (np.eye(2), "3x3"),
        (np.full((3, 3), np.nan), "3x3"),
        (np.diag([-1, 1, 1]), "mirrored"),
    ],
)
def test_impossible_homographies_are_named(homography, sentence):
    with pytest.raises(KeypatchError, match=sentence):
        transform_keypoints(homography, Keypoints([1], [1], [1], [0]))

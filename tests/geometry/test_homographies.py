"""Homographies: points, keypoints, the patches they give in another view, and matrices in text files."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keypatch.errors import DataError, KeypatchError
from keypatch.geometry import (
    Keypoints,
    ViewRange,
    apply_homography,
    cut_patches,
    random_homography,
    transform_keypoints,
)
from keypatch.geometry.homographies import read_matrix

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


@pytest.mark.parametrize(
    "text", ["1 0 3\n0 1 4\n0 0 1\n", "1.0e0,0,3\n0,1,4\n0,0,1", "  1 0 3\n\n 0 1 4 \n0 0 1  \n\n"]
)
def test_matrices_are_read_as_people_write_them(tmp_path: Path, text: str) -> None:
    (tmp_path / "H").write_text(text)
    assert read_matrix(tmp_path / "H").tolist() == [[1, 0, 3], [0, 1, 4], [0, 0, 1]]


@pytest.mark.parametrize("text", ["", "1 2 3", "1 0 0 0 1 0 0 0 one", "1 0 0 0 1 0 0 0 nan", "\xff\x00"])
def test_other_files_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "H.txt").write_bytes(text.encode("latin-1"))
    with pytest.raises(DataError, match=r"H\.txt"):
        read_matrix(tmp_path / "H.txt")


@pytest.mark.parametrize("text", ["0 0 0 0 0 0 0 0 0", "1 2 3 2 4 6 0 0 1", "1e-3 0 5 0 1e-3 7 0 0 0"])
def test_singular_matrices_are_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "H_1_3").write_text(text)
    with pytest.raises(DataError, match="H_1_3 holds a singular matrix"):
        read_matrix(tmp_path / "H_1_3")


@pytest.mark.parametrize("text", ["1e-9 0 3e-6 0 1e-9 0 0 0 1e-9", "1e-3 0 5000 0 1e-3 5000 1e-7 0 1"])
def test_any_scale_and_strong_perspective_are_no_singularity(tmp_path: Path, text: str) -> None:
    (tmp_path / "H").write_text(text)
    assert read_matrix(tmp_path / "H").shape == (3, 3)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="H_1_2"):
        read_matrix(tmp_path / "H_1_2")

"""Errors of frames and the overlap that they leave."""

import math

import numpy as np
import pytest

from keypatch.errors import KeypatchError
from keypatch.geometry import Jitter, Keypoints, frame_overlap, jitter_keypoints

MANY = Keypoints(np.arange(500), np.arange(500), np.linspace(1, 20, 500), np.linspace(-3, 3, 500))


def test_overlap_of_equal_turned_scaled_and_separate_frames():
    one = Keypoints([10] * 4, [20] * 4, [2] * 4, [0.3] * 4)
    other = Keypoints([10, 10, 10, 200], [20] * 4, [2, 2, 2 * 2**0.5, 2], [0.3, 2, 0.3, 0.3])
    expected = [1, 1, 0.5, 0]
    np.testing.assert_allclose(frame_overlap(one, other), expected, atol=0.005)
    np.testing.assert_allclose(frame_overlap(other, one), expected, atol=0.005)


@pytest.mark.parametrize("apart", [0.2, 0.7, 1.4])
def test_overlap_of_shifted_discs_is_the_lens(apart):
    """Two discs of radius 1 at this distance share 2 acos(d/2) - d/2 sqrt(4 - d^2)."""
    lens = 2 * math.acos(apart / 2) - apart / 2 * math.sqrt(4 - apart**2)
    shifted = Keypoints([5 * apart * math.cos(1)], [5 * apart * math.sin(1)], [0.5], [0])
    overlap = frame_overlap(Keypoints([0], [0], [0.5], [0]), shifted, reach=10)
    assert overlap[0] == pytest.approx(lens / (2 * math.pi - lens), abs=0.005)


def test_overlap_with_a_stretched_frame():
    """Twice as long and half as wide, against a count on a grid."""
    y, x = np.mgrid[-3:3:1500j, -3:3:1500j]
    disc, ellipse = x**2 + y**2 <= 1, (x / 2) ** 2 + (2 * y) ** 2 <= 1
    stretched = Keypoints([0], [0], [1], [0], shape=[np.diag([2, 0.5])])
    overlap = frame_overlap(Keypoints([0], [0], [1], [0]), stretched, reach=1)
    assert overlap[0] == pytest.approx((disc & ellipse).sum() / (disc | ellipse).sum(), abs=0.005)


def test_no_jitter_changes_nothing():
    same = jitter_keypoints(MANY, Jitter(0, 0, 0, 0), np.random.default_rng(0))
    np.testing.assert_allclose(same.frames(), MANY.frames(), atol=1e-4)
    np.testing.assert_allclose(same.xy, MANY.xy, atol=1e-4)


@pytest.mark.parametrize(
    ("jitter", "error"),
    [
        (Jitter(0.3, 0, 0, 0), lambda k: (k.angle - MANY.angle + math.pi) % (2 * math.pi) - math.pi),
        (Jitter(0, 0.3, 0, 0), lambda k: np.log(k.sigma / MANY.sigma)),
        (Jitter(0, 0, 0.3, 0), lambda k: np.log(np.linalg.cond(k.frames())) * np.resize([1, -1], 500)),
        (Jitter(0, 0, 0, 0.3), lambda k: (k.x - MANY.x) / np.hypot(*MANY.frames()[:, 0].T)),
    ],
)
def test_each_error_fills_its_range(jitter, error):
    errors = error(jitter_keypoints(MANY, jitter, np.random.default_rng(0)))
    assert np.abs(errors).max() < 0.3 * 1.42  # a turned frame mixes the shifts in x and y
    assert errors.std() == pytest.approx(0.3 / 3**0.5, rel=0.1)


def test_jitter_is_determined_by_the_generator():
    first, again = (jitter_keypoints(MANY, Jitter(1, 1, 1, 1), np.random.default_rng(7)) for _ in range(2))
    np.testing.assert_array_equal(first.frames(), again.frames())


def test_nothing_and_lists_of_different_length():
    none = MANY.take([])
    assert len(jitter_keypoints(none, Jitter(1, 1, 1, 1), np.random.default_rng(0))) == 0
    assert frame_overlap(none, none).shape == (0,)
    with pytest.raises(KeypatchError, match="500 and 0"):
        frame_overlap(MANY, none)

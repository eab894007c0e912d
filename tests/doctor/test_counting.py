"""Counting: which frames are the same, which matches are right; checked against a loop written out."""

import math

import numpy as np
import pytest

from keypatch.doctor.changes import SameFrame, count, same_frames
from keypatch.geometry import Keypoints, transform_keypoints

TURN = np.array([[0.0, -2.0, 300.0], [2.0, 0.0, 5.0], [0.0, 0.0, 1.0]])  # a quarter turn, twice as large


def some(n=40, seed=0):
    rng = np.random.default_rng(seed)
    return Keypoints(
        rng.uniform(0, 100, n), rng.uniform(0, 100, n), rng.uniform(1, 9, n), rng.uniform(-math.pi, math.pi, n)
    )


def moved(keypoints, x=0.0, octaves=0.0, degrees=0.0):
    return Keypoints(keypoints.x + x, keypoints.y, keypoints.sigma * 2**octaves, keypoints.angle + np.radians(degrees))


def test_keypoints_carried_over_are_all_found_again_and_matched():
    first = some()
    order = np.random.default_rng(1).permutation(len(first))
    second = transform_keypoints(TURN, first).take(order)
    matches = np.stack([order, np.arange(len(first))], axis=1)
    found = count(first, second, TURN, matches)
    assert (found.keypoints, found.found_again, found.matched, found.matches, found.right) == (40,) * 5
    assert found.share == 1


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"x": 2.9}, True),
        ({"x": 3.1}, False),
        ({"octaves": 0.24}, True),
        ({"octaves": -0.26}, False),
        ({"degrees": -14.5}, True),
        ({"degrees": 15.5}, False),
        ({"degrees": 720 + 14}, True),
    ],
)
def test_a_frame_is_the_same_within_3_px_a_quarter_octave_and_15_degrees(change, same):
    one = Keypoints([50], [50], [2], [3.1])
    assert len(same_frames(one, moved(one, **change), np.eye(3))) == same


def test_pairs_agree_with_a_loop():
    first, second, same = some(60), moved(some(60), x=1, octaves=0.1), SameFrame(pixels=12, octaves=1, degrees=60)
    expected = [
        (i, j)
        for i in range(60)
        for j in range(60)
        if math.hypot(first.x[i] - second.x[j], first.y[i] - second.y[j]) <= 12
        and abs(math.log2(first.sigma[i] / second.sigma[j])) <= 1
        and math.cos(first.angle[i] - second.angle[j]) >= 0.5
    ]
    assert len(expected) > 60
    assert sorted(map(tuple, same_frames(first, second, np.eye(3), same).tolist())) == expected


def test_many_keypoints_are_compared_piece_by_piece():
    grid = np.arange(2500)
    many = Keypoints(grid % 50 * 10, grid // 50 * 10, np.ones(2500), np.zeros(2500))
    np.testing.assert_array_equal(same_frames(many, many, np.eye(3)), np.stack([grid, grid], axis=1))


def test_a_match_at_the_place_with_another_frame_is_right_but_not_matched():
    first = some(5)
    found = count(first, moved(first, degrees=90), np.eye(3), [(i, i) for i in range(5)])
    assert (found.found_again, found.matched, found.right) == (0, 0, 5)
    assert math.isnan(found.share)


def test_a_wrong_match_counts_against_the_share():
    first = Keypoints([10, 50, 90], [10, 10, 10], [2, 2, 2], [0, 0, 0])
    found = count(first, first, np.eye(3), [(0, 0), (1, 2)])
    assert (found.found_again, found.matched, found.matches, found.right) == (3, 1, 2, 1)


def test_nothing_to_compare_gives_zeros():
    nothing = some(0)
    assert count(nothing, some(), np.eye(3), []).found_again == 0
    assert count(some(), nothing, np.eye(3), []).found_again == 0

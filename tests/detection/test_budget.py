"""Spending a budget of keypoints: the three rules against their definitions, and exactness against a slow loop."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from keypatch.detection import RULES, spend
from keypatch.detection.budget import suppression_radius
from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints

# few distinct values, so that places, responses and distances coincide often
PLACES = st.integers(0, 40).flatmap(lambda n: arrays(np.float32, (n, 2), elements=st.integers(-6, 6).map(float)))
LEVELS = st.sampled_from([0.0, 0.9, 1.0, 1.2, 5.0, -3.0])


def keypoints(xy, response, sigma=None):
    xy = np.asarray(xy, np.float32).reshape(-1, 2)
    return Keypoints(
        xy[:, 0], xy[:, 1], np.ones(len(xy)) if sigma is None else sigma, np.zeros(len(xy)), None, response
    )


def slow_radius(xy, response):
    """The definition: every point against every other."""
    strength = np.maximum(np.asarray(response, np.float64), 0)
    radius = np.full(len(xy), np.inf)
    for i in range(len(xy)):
        stronger = xy[strength * 0.9 > strength[i]]
        radius[i] = np.sqrt(((xy[i] - stronger) ** 2).sum(axis=1)).min(initial=np.inf)
    return radius


@given(PLACES, st.data())
def test_radius_is_the_distance_to_the_nearest_clearly_stronger_point(places, data):
    response = data.draw(arrays(np.float32, len(places), elements=LEVELS))
    xy = places.astype(np.float64)
    np.testing.assert_array_equal(suppression_radius(xy, response), slow_radius(xy, response))


@settings(max_examples=15)
@given(st.integers(0, 2**32 - 1), st.sampled_from(["smooth", "random", "two levels"]))
def test_radius_of_many_points_is_exact(seed, kind):
    random = np.random.default_rng(seed)
    xy = random.uniform(0, 1000, (300, 2)).astype(np.float32).astype(np.float64)
    response = {
        "smooth": np.exp(xy[:, 0] / 300),
        "random": random.uniform(size=300),
        "two levels": np.where(xy[:, 0] > 500, 1.0, 0.5),
    }[kind].astype(np.float32)
    np.testing.assert_array_equal(suppression_radius(xy, response), slow_radius(xy, response))


@pytest.mark.parametrize("rule", RULES)
@given(PLACES, st.integers(0, 50), st.data())
def test_a_smaller_budget_keeps_the_beginning_of_a_larger_one(rule, places, count, data):
    response = data.draw(arrays(np.float32, len(places), elements=LEVELS))
    found = keypoints(places, response, np.arange(1, len(places) + 1) % 4 + 1)
    whole, part = spend(found, len(found), rule), spend(found, count, rule)
    assert len(whole) == len(found)
    assert len(part) == min(count, len(found))
    np.testing.assert_array_equal(part.xy, whole.xy[:count])
    np.testing.assert_array_equal(part.response, whole.response[:count])


def test_each_rule_ranks_by_its_own_measure():
    #       a strong pair close together, a weak point far off, a large one next to the pair
    found = keypoints([(0, 0), (1, 0), (100, 0), (3, 0)], [10, 8, 1, 2], [1, 2, 3, 4])
    assert list(spend(found, 2, "strongest").x) == [0, 1]
    assert list(spend(found, 2, "largest").x) == [3, 100]
    assert list(spend(found, 2, "spread").x) == [0, 100]


@pytest.mark.parametrize("rule", RULES)
def test_equal_keypoints_keep_their_order(rule):
    found = keypoints([(7, 0), (3, 0), (5, 0), (3, 0)], np.ones(4))
    assert list(spend(found, 3, rule).x) == [7, 3, 5]


def test_nearly_as_strong_neighbours_do_not_suppress_each_other():
    assert list(suppression_radius(np.array([[0.0, 0], [3, 4]]), np.float32([1, 0.95]))) == [np.inf, np.inf]
    assert list(suppression_radius(np.array([[0.0, 0], [3, 4]]), np.float32([1, 0.85]))) == [np.inf, 5]


def test_spread_reaches_where_the_strongest_do_not():
    random = np.random.default_rng(0)
    xy = random.uniform(0, 1000, (3000, 2))
    response = random.uniform(size=3000) * np.where(xy[:, 0] < 500, 1, 0.1)  # the right half is dim
    right = {rule: (spend(keypoints(xy, response), 300, rule).x >= 500).mean() for rule in ("strongest", "spread")}
    assert right["strongest"] == 0
    assert right["spread"] > 0.3


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("n", [0, 1])
def test_none_and_one(rule, n):
    found = keypoints(np.zeros((n, 2)), np.ones(n))
    assert [len(spend(found, count, rule)) for count in (0, 1, 5)] == [0, n, n]


def test_largest_needs_no_response():
    found = keypoints([(0, 0), (1, 1)], None, [1, 2])
    assert list(spend(found, 1, "largest").x) == [1]
    for rule in ("strongest", "spread"):
        with pytest.raises(KeypatchError, match=r'needs responses, which these keypoints lack\. Use "largest"'):
            spend(found, 1, rule)

"""The corner error: by hand, and the estimates that have none."""

import math

import numpy as np
import pytest

from keypatch.errors import KeypatchError
from keypatch.metrics import corner_error

SIZE = (101, 51)
TILTED = np.array([[1, 0.1, 3], [-0.1, 1.2, 5], [1e-4, 2e-4, 1]])


def test_by_hand():
    moved = np.eye(3)
    moved[:2, 2] = 3, 4
    assert corner_error(moved, np.eye(3), SIZE) == pytest.approx(5)
    # twice as large: the corners (0, 0), (100, 0), (0, 50), (100, 50) go as far again as they are from the first
    assert corner_error(np.diag([2, 2, 1]), np.eye(3), SIZE) == pytest.approx((0 + 100 + 50 + math.hypot(100, 50)) / 4)


def test_the_factor_of_a_homography_does_not_matter():
    assert corner_error(-3 * TILTED, TILTED, SIZE) == pytest.approx(0, abs=1e-12)


@pytest.mark.parametrize(
    "estimate", [None, np.full((3, 3), np.nan), np.zeros((3, 3)), [[1, 0, 0], [0, 1, 0], [-0.01, 0, 1]]]
)
def test_no_estimate_is_an_infinite_error(estimate):
    """The last one sends the corners at x = 100 to infinity."""
    assert corner_error(estimate, TILTED, SIZE) == math.inf


def test_wrong_matrices_are_named():
    with pytest.raises(KeypatchError, match="3x3"):
        corner_error(np.eye(2), TILTED, SIZE)
    with pytest.raises(KeypatchError, match="3x3"):
        corner_error(None, np.eye(2), SIZE)

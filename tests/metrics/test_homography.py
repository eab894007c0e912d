"""Corner and transfer errors: by hand, and at infinity."""

import math

import numpy as np
import pytest

from keypatch.errors import KeypatchError
from keypatch.metrics import corner_error, epipolar_errors, transfer_errors

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


def test_errors_are_distances_in_the_second_photo() -> None:
    homography = [[2.0, 0, 10], [0, 2, 20], [0, 0, 1]]
    errors = transfer_errors(homography, [[0, 0], [5, 5]], [[10, 20], [20, 34]])
    assert errors.tolist() == [0, 4]


def test_a_homography_known_up_to_its_scale_is_the_same() -> None:
    homography = np.array([[1, 0.1, 3], [-0.1, 1, 2], [1e-3, 0, 1]])
    points = np.random.default_rng(0).uniform(0, 100, (2, 20, 2))
    assert transfer_errors(-7 * homography, *points) == pytest.approx(transfer_errors(homography, *points))


def test_a_point_on_the_horizon_is_infinitely_wrong() -> None:
    assert transfer_errors([[1, 0, 0], [0, 1, 0], [1, 0, 0]], [[0, 5]], [[0, 5]]).tolist() == [np.inf]


def test_no_points_have_no_errors() -> None:
    assert transfer_errors(np.eye(3), np.empty((0, 2)), np.empty((0, 2))).shape == (0,)


def test_only_a_matrix_is_a_homography() -> None:
    with pytest.raises(KeypatchError, match="3x3"):
        transfer_errors(np.eye(2), [[0, 0]], [[0, 0]])


def test_the_distance_from_epipolar_lines_is_sampsons() -> None:
    rng = np.random.default_rng(0)
    fundamental, first, second = rng.normal(size=(3, 3)), rng.uniform(0, 9, (5, 2)), rng.uniform(0, 9, (5, 2))
    for x, y, error in zip(first, second, epipolar_errors(fundamental, first, second), strict=True):
        x, y = [*x, 1.0], [*y, 1.0]
        line, back = fundamental @ x, fundamental.T @ y
        assert error == pytest.approx(
            abs(y @ line) / np.sqrt(line[0] ** 2 + line[1] ** 2 + back[0] ** 2 + back[1] ** 2)
        )


def test_a_shift_along_the_rows_is_off_by_the_difference_of_the_rows() -> None:
    sideways = [[0, 0, 0], [0, 0, -1], [0, 1, 0]]
    assert epipolar_errors(sideways, [[0, 0], [5, 5]], [[7, 0], [9, 7]]) == pytest.approx([0, 2 / np.sqrt(2)])
    assert epipolar_errors(np.zeros((3, 3)), [[0, 0]], [[7, 0]]).tolist() == [np.inf]

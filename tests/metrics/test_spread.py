"""Moments of the cosines, against the uniform sphere and against sets whose cosines are known."""

import numpy as np
import pytest

from keypatch.errors import KeypatchError
from keypatch.metrics import spread_moments


@pytest.mark.parametrize("dim", [2, 32, 128])
def test_uniform_vectors_have_mean_0_and_second_moment_1_over_d(dim: int) -> None:
    n = 50_000
    first, second = np.random.default_rng(dim).normal(size=(2, n, dim)).astype(np.float32)
    m1, m2 = spread_moments(first, second)
    # four standard deviations: var s = 1/d, var s^2 = 3 / (d (d + 2)) - 1 / d^2
    assert abs(m1) < 4 / np.sqrt(dim * n)
    assert abs(m2 - 1 / dim) < 4 * np.sqrt((3 / (dim * (dim + 2)) - 1 / dim**2) / n)


def test_equal_orthogonal_and_opposite_vectors() -> None:
    x, y = np.eye(2, dtype=np.float32)
    assert spread_moments(np.stack([x, x]), np.stack([x, x])) == (1.0, 1.0)
    assert spread_moments(np.stack([x, y]), np.stack([y, x])) == (0.0, 0.0)
    assert spread_moments(np.stack([x, x]), np.stack([x, -x])) == (0.0, 1.0)


def test_raw_vectors_are_scaled_to_unit_length() -> None:
    first, second = np.random.default_rng(0).normal(1, 1, size=(2, 100, 8)).astype(np.float32)
    lengths = np.geomspace(0.01, 100, 100, dtype=np.float32)[:, None]
    assert spread_moments(lengths * first, second) == pytest.approx(spread_moments(first, second))


def test_a_vector_of_zeros_is_orthogonal_to_everything() -> None:
    ones = np.ones((2, 4), np.float32)
    assert spread_moments(ones * [[0], [1]], ones) == (0.5, 0.5)


def test_no_pairs_have_no_moments() -> None:
    assert np.isnan(spread_moments(np.empty((0, 4), np.float32), np.empty((0, 4), np.float32))).all()


@pytest.mark.parametrize(
    ("first", "second", "part"),
    [
        (np.ones((2, 4)), np.ones((3, 4)), r"\(2, 4\) and \(3, 4\)"),
        (np.ones(4), np.ones(4), r"\(4,\)"),
        (np.ones((1, 2)), np.array([[np.nan, 1]]), "nan or inf"),
    ],
)
def test_wrong_input_is_a_sentence(first: np.ndarray, second: np.ndarray, part: str) -> None:
    with pytest.raises(KeypatchError, match=part):
        spread_moments(first, second)

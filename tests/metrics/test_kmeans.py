"""k-means: finds what is apart, depends on its seed alone, never gets worse."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keypatch.errors import KeypatchError
from keypatch.metrics import agreement, kmeans


def blobs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.arange(60) % 3
    return rng.normal(0, 0.1, (60, 5)) + 10 * np.eye(3, 5)[labels], labels


def squared_error(rows: np.ndarray, clusters: np.ndarray) -> float:
    return sum(float(np.sum((rows[clusters == k] - rows[clusters == k].mean(0)) ** 2)) for k in np.unique(clusters))


def test_groups_that_are_apart_are_found_from_a_good_start() -> None:
    rows, labels = blobs()
    best = min((kmeans(rows, 3, seed) for seed in range(8)), key=lambda found: squared_error(rows, found))
    assert agreement(labels, best).f1 == 1


def test_the_seed_decides() -> None:
    rows = np.random.default_rng(0).normal(size=(200, 4))
    assert np.array_equal(kmeans(rows, 9, 1), kmeans(rows, 9, 1))
    assert not np.array_equal(kmeans(rows, 9, 1), kmeans(rows, 9, 2))


def test_iterations_lower_the_squared_error_and_the_end_is_a_fixed_point() -> None:
    rows = np.random.default_rng(1).normal(size=(300, 3))
    errors = [squared_error(rows, kmeans(rows, 12, 0, iterations)) for iterations in (0, 1, 3, 1000)]
    assert errors == sorted(errors, reverse=True) and errors[-1] < 0.9 * errors[0]
    found = kmeans(rows, 12, 0)
    centres = np.stack([rows[found == k].mean(0) for k in np.unique(found)])
    moved = ((rows[:, None] - centres) ** 2).sum(2).argmin(1)
    assert np.mean(np.unique(found)[moved] != found) < 0.01


@given(st.integers(1, 20), st.integers(0, 3))
def test_every_row_gets_one_of_k_clusters_also_with_duplicates(k: int, seed: int) -> None:
    rows = np.random.default_rng(seed).integers(0, 3, (20, 2)).astype(np.float32)
    found = kmeans(rows, k, seed)
    assert found.shape == (20,) and found.min() >= 0 and found.max() < k


@pytest.mark.parametrize("k", [0, 4])
def test_an_impossible_number_of_clusters_is_refused(k: int) -> None:
    with pytest.raises(KeypatchError, match=f"1 to n clusters, found .* k={k}"):
        kmeans(np.ones((3, 2)), k, 0)

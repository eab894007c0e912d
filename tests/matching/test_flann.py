"""FLANN's neighbours: nearly always the nearest, and the same every time."""

import numpy as np

from keypatch.matching.matching import Matching
from keypatch.matching.neighbours import match_descriptors


def vectors(seed: int, count: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(count, 16))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_most_matches_are_those_of_the_exact_search_and_repeat() -> None:
    first = vectors(0, 900)
    second = first[::-1] + 0.02 * vectors(1, 900)
    exact, one, two = (
        match_descriptors(first, second, Matching(neighbours=how)) for how in ("tiles", "flann", "flann")
    )
    assert np.array_equal(one.indices, two.indices)
    both = set(map(tuple, exact.indices.tolist())) & set(map(tuple, one.indices.tolist()))
    assert len(both) > 0.95 * len(exact) and len(exact) > 800


def test_scores_are_of_the_same_distances() -> None:
    first, second = vectors(0, 50), vectors(1, 60)  # fewer than it checks: exact
    exact, found = (
        match_descriptors(first, second, Matching(ratio=None, neighbours=how)) for how in ("tiles", "flann")
    )
    assert np.array_equal(exact.indices, found.indices)
    np.testing.assert_allclose(found.scores, exact.scores, atol=1e-6)


def test_a_single_vector_has_no_second_nearest() -> None:
    matching = Matching(ratio=0.8, neighbours="flann")
    assert match_descriptors(vectors(0, 5), vectors(0, 1), matching).indices.tolist() == [[0, 0]]

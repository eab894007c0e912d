"""Rank-1 against a loop, and its treatment of ties."""

import numpy as np
import pytest
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.metrics import ranking
from keypatch.metrics.ranking import rank1, stranger_distances


def rank1_by_a_loop(queries: NDArray[np.float32], gallery: NDArray[np.float32], target: NDArray[np.int64]) -> float:
    hits = 0
    for query, wanted in zip(queries, target, strict=True):
        distances = np.linalg.norm(gallery.astype(float) - query.astype(float), axis=1)
        hits += bool((distances[wanted] < np.delete(distances, wanted)).all())
    return hits / len(queries)


@pytest.mark.parametrize("block", [10, 60, ranking.BLOCK])
def test_rank1_is_the_share_of_queries_nearest_to_their_target(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "BLOCK", block)
    rng = np.random.default_rng(0)
    gallery = rng.normal(size=(30, 8)).astype(np.float32)
    target = rng.integers(0, 30, 50)
    queries = (gallery[target] + rng.normal(0, 1, (50, 8))).astype(np.float32)
    expected = rank1_by_a_loop(queries, gallery, target)
    assert 0.2 < expected < 0.9
    assert rank1(queries, gallery, target) == expected


def test_a_tie_is_a_miss() -> None:
    gallery = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    assert rank1(gallery, gallery, np.arange(3)) == pytest.approx(1 / 3)


def test_constant_descriptors_find_nothing() -> None:
    constant = np.full((40, 128), 1 / np.sqrt(128), dtype=np.float32)
    assert rank1(constant, constant, np.arange(40)) == 0


def test_near_identical_rows_are_told_apart() -> None:
    # squared distances of 1e-10 vanish in 2 - 2s of float32, not in the differences
    rng = np.random.default_rng(0)
    base = rng.normal(size=(1, 64)).astype(np.float32)
    gallery = np.concatenate([base, base + 1e-5, -base]).astype(np.float32)
    assert rank1(gallery, gallery, np.arange(3)) == 1


def nearly_equal(noise: float, modes: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Unit vectors of a collapsed network: a common direction, or a few, and noise; row i of both is the same point."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=(modes, 64))[np.arange(400) % modes]
    points = rng.normal(size=(400, 64))
    rows = common + noise * (points + rng.normal(0, 0.9, (2, 400, 64)))
    queries, gallery = (rows / np.linalg.norm(rows, axis=2, keepdims=True)).astype(np.float32)
    return queries, gallery


@pytest.mark.parametrize("block", [3000, ranking.BLOCK])
@pytest.mark.parametrize("noise", [1e-4, 1e-6])
@pytest.mark.parametrize("modes", [1, 3])
def test_nearly_equal_rows_have_the_rank1_of_a_loop(
    noise: float, modes: int, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "BLOCK", block)
    queries, gallery = nearly_equal(noise, modes)
    own, shuffled = np.arange(400), np.random.default_rng(1).permutation(400)
    expected = rank1_by_a_loop(queries, gallery, own)
    assert 0.05 < expected < 0.999
    assert rank1(queries, gallery, own) == expected
    assert rank1(queries, gallery, shuffled) == rank1_by_a_loop(queries, gallery, shuffled) < 0.02, "chance is 1/400"


def test_rows_of_another_label_are_found_and_none_is_infinitely_far() -> None:
    rows, labels = np.array([[0], [1], [3], [9]], np.float32), np.array([5, 5, 7, 7])
    assert stranger_distances(rows, labels, rows, labels).tolist() == [9, 4, 4, 64]
    assert stranger_distances(rows[:2], labels[:2], rows[:2], labels[:2]).tolist() == [np.inf, np.inf]


def test_small_galleries() -> None:
    one = np.ones((1, 4), dtype=np.float32)
    assert rank1(one, one, np.array([0])) == 1
    assert np.isnan(rank1(one[:0], one, np.empty(0, dtype=np.int64)))
    assert np.isnan(rank1(one[:0], one[:0], np.empty(0, dtype=np.int64)))


@pytest.mark.parametrize(
    ("queries", "gallery", "target", "words"),
    [
        (np.ones((2, 3)), np.ones((2, 4)), np.arange(2), "same d"),
        (np.ones(3), np.ones((2, 3)), np.arange(1), "same d"),
        (np.ones((2, 3)), np.ones((2, 3)), np.arange(3), "one target"),
        (np.ones((2, 3)), np.ones((2, 3)), np.array([0, 2]), "outside the gallery of 2 rows"),
        (np.full((2, 3), np.nan), np.ones((2, 3)), np.arange(2), "nan or inf"),
    ],
)
def test_wrong_arrays_are_named(
    queries: NDArray[np.float32], gallery: NDArray[np.float32], target: NDArray[np.int64], words: str
) -> None:
    with pytest.raises(KeypatchError, match=words):
        rank1(queries, gallery, target)

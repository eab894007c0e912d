"""Nearest patches and nearer distractors are found as a plain float64 loop finds them, ties and roundings included."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist

from keypatch.benchmarks.hpatches import matching
from keypatch.benchmarks.hpatches.distances import bounded_distances, exact_distances, listed_distances
from keypatch.benchmarks.hpatches.matching import count_nearer, nearest_rows
from keypatch.benchmarks.hpatches.verification import Nodes, Ranked
from keypatch.metrics.listed import false_before_sorted, listed_auc, listed_precision

METRIC = {"L2": "euclidean", "L1": "cityblock"}


def unit(rng: np.random.Generator, rows: int) -> NDArray[np.float32]:
    vectors = rng.standard_normal((rows, 8))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def make(kind: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    rng = np.random.default_rng(1)
    first, second = unit(rng, 60), unit(rng, 50)
    if kind == "repeated":  # the same row at many places, where products of matrices may round differently
        second[7:] = second[rng.integers(0, 7, 43)]
    if kind == "quantised":
        first, second = np.rint(3 * first), np.rint(3 * second)
    if kind == "constant":
        first[:], second[:] = 1, 1
    if kind == "nearly equal":  # closer to each other than float32 products can tell
        second = (second[:1].astype(np.float64) * (1 + 1e-7 * np.arange(50)[:, None])).astype(np.float32)
    if kind == "far away":
        first, second = first + 1000, second + 1000
    if kind == "huge":  # squares overflow in float32
        first, second = first * np.float32(1e25), second * np.float32(1e25)
    return np.ascontiguousarray(first, np.float32), np.ascontiguousarray(second, np.float32)


KINDS = ["plain", "repeated", "quantised", "constant", "nearly equal", "far away", "huge"]


@pytest.mark.parametrize("tile", [1, 700, 4_000_000])
@pytest.mark.parametrize("distance", METRIC)
@pytest.mark.parametrize("kind", KINDS)
def test_the_nearest_row_is_that_of_all_distances(
    kind: str, distance: Any, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "TILE", tile)
    first, second = make(kind)
    distances = cdist(first, second, METRIC[distance])
    nearest, apart, alone = nearest_rows(first, second, distance)
    np.testing.assert_array_equal(nearest, distances.argmin(axis=1))
    np.testing.assert_array_equal(alone, (distances == distances.min(axis=1, keepdims=True)).sum(axis=1) == 1)
    expected = distances.min(axis=1)
    np.testing.assert_allclose(np.sqrt(apart) if distance == "L2" else apart, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("ties", ["public", "pessimistic"])
@pytest.mark.parametrize("distance", METRIC)
@pytest.mark.parametrize("kind", KINDS)
def test_nearer_distractors_are_counted_pool_by_pool(kind: str, distance: Any, ties: Any) -> None:
    queries, others = make(kind)
    right_rows = np.stack([queries, np.roll(queries, 1, axis=0), np.roll(others[:1], 1, axis=0).repeat(60, 0)], axis=1)
    right = np.stack([exact_distances(queries, right_rows[:, k], distance) for k in range(3)], axis=1)
    limits = np.array([5, 20])
    found = count_nearer(queries, others, right, limits, distance, ties)
    for query in range(60):
        apart = exact_distances(queries[[query] * 50], others, distance)
        for k in range(3):
            nearer = apart < right[query, k] if ties == "public" else apart <= right[query, k]
            assert found[query, :, k].tolist() == [nearer[:5].sum(), nearer[:20].sum(), nearer.sum()]


@pytest.mark.parametrize("kind", ["plain", "quantised", "nearly equal", "far away"])
@pytest.mark.parametrize("distance", METRIC)
def test_rounded_distances_stay_within_their_bound(kind: str, distance: Any) -> None:
    first, second = make(kind)
    found, error = bounded_distances(first, second, distance)
    exact = cdist(first, second, METRIC[distance]) ** (2 if distance == "L2" else 1)
    assert (np.abs(found.double().numpy() - exact) <= error.double().numpy()[:, None] + 1e-12).all()


@pytest.mark.parametrize("distance", METRIC)
def test_listed_distances_are_those_of_float32_differences(distance: Any) -> None:
    rows, _ = make("plain")
    first, second = np.random.default_rng(0).integers(0, 60, (2, 10_000))
    found = listed_distances(rows, first, second, distance)
    difference = (rows[first] - rows[second]).astype(np.float64)
    expected = np.sqrt((difference**2).sum(1)) if distance == "L2" else np.abs(difference).sum(1)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, expected, rtol=3e-7)


def ranked(distances: ArrayLike, sequences: ArrayLike) -> Ranked:
    return Ranked(np.asarray(distances), np.asarray(sequences), np.arange(len(np.asarray(distances))))


def test_drawn_sequences_score_as_lists_with_their_pairs_repeated() -> None:
    rng = np.random.default_rng(0)
    sequences, size = 5, 4000
    positive, negative = rng.normal(1.0, 0.3, size), rng.normal(1.8, 0.3, size)
    own, other = rng.integers(0, sequences, (2, size))
    positive += 0.1 * own  # some sequences are harder
    order = np.argsort(positive)
    nodes = Nodes.of(ranked(positive[order], own[order]), ranked(negative, other), sequences)
    draws = np.array([[1, 1, 1, 1, 1], [0, 0, 2, 3, 0], [5, 0, 0, 0, 0]])
    for draw, precision, area in zip(draws, nodes.precisions(draws), nodes.areas(draws), strict=True):
        before = false_before_sorted(np.sort(positive.repeat(draw[own])), np.sort(negative.repeat(draw[other])))
        # read at 500 thresholds instead of 4,000
        assert precision == pytest.approx(float(listed_precision(before, len(before))), abs=2e-4)
        assert area == pytest.approx(listed_auc(before, int(draw[other].sum())), abs=2e-4)


def test_a_draw_without_a_positive_has_no_score() -> None:
    nodes = Nodes.of(ranked([1.0, 2.0], [0, 0]), ranked([1.5], [1]), 2)
    draws = np.array([[0, 2], [2, 0], [1, 1]])
    assert np.isnan(nodes.precisions(draws)).tolist() == [True, False, False]
    assert np.isnan(nodes.areas(draws)).tolist() == [True, True, False]


def test_negatives_beyond_all_positives_are_never_accepted() -> None:
    nodes = Nodes.of(ranked([1.0, 2.0], [0, 1]), ranked([1.5, 9.0], [1, 0]), 2)
    assert nodes.false.tolist() == [[0, 0], [0, 0], [0, 1]]
    assert nodes.areas(np.array([[1, 1]])).tolist() == [1 - (0 + 0.5) / 2 / 2]


def test_the_tile_of_retrieval_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    from keypatch.benchmarks.hpatches.descriptors import StripDescriptors
    from keypatch.benchmarks.hpatches.lists import draw_tasks

    counts = [20, 30, 25]
    rows = unit(np.random.default_rng(3), 16 * sum(counts))
    descriptors = StripDescriptors(("i_a", "i_b", "v_c"), np.array(counts), rows)
    tasks = draw_tasks(descriptors.names, counts)
    whole = matching.retrieve(descriptors, tasks, "L2", "public", "trapezoid")
    monkeypatch.setattr(matching, "TILE", 37)
    parts = matching.retrieve(descriptors, tasks, "L2", "public", "trapezoid")
    np.testing.assert_array_equal(whole.precision, parts.precision)
    assert whole.pools == ("all",), "no query has 95 distractors"

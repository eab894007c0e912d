"""Recall@K and the scores of clusterings: against the figures of others, against loops, and what always holds."""

import math
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.metrics import Agreement, agreement, bootstrap, drawn_agreement, nearest_ranks, ranking, recall_at

LABELLINGS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=25)


@pytest.fixture(scope="module")
def figures(reference: Path) -> dict[str, NDArray[Any]]:
    """scikit-learn's NMI, counts over all pairs, and recall by brute force, on 206 embeddings."""
    return dict(np.load(reference / "auc_embedding.npz"))


@pytest.mark.parametrize("block", [1000, ranking.BLOCK])
def test_recall_is_that_of_brute_force(
    figures: dict[str, NDArray[Any]], block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keypatch.metrics.embedding.BLOCK", block)
    found = recall_at(figures["emb"], figures["labels"], figures["recall_k"].tolist())
    np.testing.assert_allclose(found, figures["recall_at_k"], rtol=0, atol=1e-9)


def test_the_scores_of_a_clustering_are_those_of_scikit_learn_and_of_counting(figures: dict[str, NDArray[Any]]) -> None:
    found = agreement(figures["labels"], figures["clusters"])
    expected = {
        "nmi": "nmi_arithmetic",
        "precision": "pair_precision",
        "recall": "pair_recall",
        "f1": "pair_f1",
        "rand": "rand_index",
        "purity": "purity",
    }
    for ours, theirs in expected.items():
        assert getattr(found, ours) == pytest.approx(float(figures[theirs]), abs=1e-9)


def ranks_by_a_loop(rows: NDArray[Any], labels: NDArray[Any]) -> list[float]:
    ranks: list[float] = []
    for i in range(len(rows)):
        others = [j for j in range(len(rows)) if j != i]
        distances = {j: float(np.sum((rows[i] - rows[j]) ** 2)) for j in others}
        # among equal distances the other classes come first
        order = sorted(others, key=lambda j: (distances[j], labels[j] == labels[i]))
        ranks.append(next((place for place, j in enumerate(order, 1) if labels[j] == labels[i]), math.inf))
    return ranks


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=12))
def test_ranks_are_those_of_a_loop_with_many_ties(points: list[tuple[int, int, int]]) -> None:
    rows = np.array([point[:2] for point in points], float)
    labels = np.array([point[2] for point in points])
    assert nearest_ranks(rows, labels).tolist() == ranks_by_a_loop(rows, labels)


def test_constant_embeddings_find_nothing_whatever_the_rounding() -> None:
    labels = np.arange(300) // 3
    row = np.random.default_rng(0).normal(size=(1, 97)).astype(np.float32)
    assert recall_at(np.repeat(row, 300, axis=0), labels, (1, 10, 297, 298)) == (0, 0, 0, 1)


def test_an_image_alone_in_its_class_is_never_found() -> None:
    rows = np.array([[0.0], [1.0], [5.0]])
    assert recall_at(rows, ["a", "a", "b"], (1, 2, 3, 1000)) == pytest.approx((2 / 3,) * 4)


def test_nothing_has_no_scores() -> None:
    assert math.isnan(recall_at(np.empty((0, 4)), [], (1,))[0])
    assert all(math.isnan(value) for value in vars(agreement([], [])).values())


@given(LABELLINGS)
def test_agreement_is_that_of_counting_all_pairs(pairs: list[tuple[int, int]]) -> None:
    classes, clusters = zip(*pairs, strict=True)
    judged = [(a[0] == b[0], a[1] == b[1]) for a, b in combinations(pairs, 2)]
    both = sum(same_class and same_cluster for same_class, same_cluster in judged)
    found, wanted = sum(cluster for _, cluster in judged), sum(same for same, _ in judged)
    score = agreement(classes, clusters)
    assert score.precision == pytest.approx(both / found if found else math.nan, nan_ok=True)
    assert score.recall == pytest.approx(both / wanted if wanted else math.nan, nan_ok=True)
    assert score.rand == pytest.approx(sum(a == b for a, b in judged) / len(judged))
    if both:
        harmonic = 2 * score.precision * score.recall / (score.precision + score.recall)
        assert score.f1 == pytest.approx(harmonic)
    common = sum(max(pairs.count((j, k)) for j in set(classes)) for k in set(clusters))
    assert score.purity == pytest.approx(common / len(pairs))


@given(LABELLINGS)
def test_agreement_knows_no_names_and_no_direction(pairs: list[tuple[int, int]]) -> None:
    classes, clusters = (np.array(each) for each in zip(*pairs, strict=True))
    score, renamed, swapped = (
        agreement(classes, clusters),
        agreement(7 - classes, [f"c{k}" for k in clusters]),
        agreement(clusters, classes),
    )
    assert vars(renamed) == pytest.approx(vars(score), nan_ok=True)
    for name in ("nmi", "f1", "rand"):
        assert getattr(swapped, name) == pytest.approx(getattr(score, name), nan_ok=True)
    assert swapped.precision == pytest.approx(score.recall, nan_ok=True)
    assert all(math.isnan(value) or 0 <= value <= 1 for value in vars(score).values())


@given(LABELLINGS)
def test_the_classes_themselves_agree_wholly(pairs: list[tuple[int, int]]) -> None:
    classes = [j for j, _ in pairs]
    score = agreement(classes, classes)
    assert score.purity == score.rand == 1
    if len(set(classes)) > 1:
        assert score.nmi == pytest.approx(1)


@pytest.mark.parametrize(
    ("clusters", "expected"),
    [
        ([0, 0, 0, 0], Agreement(0.0, 1 / 3, 1.0, 0.5, 1 / 3, 0.5)),  # all in one
        ([0, 1, 2, 3], Agreement(2 / 3, math.nan, 0.0, 0.0, 2 / 3, 1.0)),  # each alone: H_c = ln 4, I = H_y = ln 2
    ],
)
def test_trivial_clusterings_of_two_pairs(clusters: list[int], expected: Agreement) -> None:
    assert vars(agreement([0, 0, 1, 1], clusters)) == pytest.approx(vars(expected), nan_ok=True)


def test_one_class_in_one_cluster_has_no_mutual_information() -> None:
    assert math.isnan(agreement([3, 3], [1, 1]).nmi)


@given(LABELLINGS)
def test_each_row_drawn_once_gives_the_agreement(pairs: list[tuple[int, int]]) -> None:
    classes, clusters = np.transpose(pairs)
    score = agreement(classes, clusters)
    drawn = drawn_agreement(classes, clusters)(np.ones(len(classes), np.int64))
    assert drawn == pytest.approx((score.nmi, score.f1), abs=1e-12, nan_ok=True)


def test_drawn_f1_counts_pairs_of_different_rows() -> None:
    classes, clusters, counts = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 1, 1]), np.array([2, 1, 0, 3, 1])
    weights = {(i, j): counts[i] * counts[j] for i, j in combinations(range(5), 2)}
    found = sum(weight for (i, j), weight in weights.items() if clusters[i] == clusters[j])
    wanted = sum(weight for (i, j), weight in weights.items() if classes[i] == classes[j])
    both = sum(w for (i, j), w in weights.items() if clusters[i] == clusters[j] and classes[i] == classes[j])
    assert drawn_agreement(classes, clusters)(counts)[1] == pytest.approx(2 * both / (found + wanted))


def test_drawing_again_does_not_make_small_classes_look_better() -> None:
    """Plain scores of the drawn rows would: every class has five rows, and copies of a row always agree."""
    rng = np.random.default_rng(0)
    classes = np.repeat(np.arange(100), 5)
    clusters = np.where(rng.random(500) < 0.7, classes, rng.integers(0, 100, 500))
    score = agreement(classes, clusters)
    drawn = bootstrap(drawn_agreement(classes, clusters), 500)
    rows = [np.random.default_rng(k).integers(0, 500, 500) for k in range(100)]
    plain = np.mean([(of.nmi, of.f1) for of in (agreement(classes[row], clusters[row]) for row in rows)], axis=0)
    for value, replicates, biased in zip((score.nmi, score.f1), drawn.T, plain, strict=True):
        assert replicates.mean() == pytest.approx(value, abs=replicates.std() / 3)
        assert biased > value + 3 * replicates.std()


def test_wrong_arrays_are_named() -> None:
    with pytest.raises(KeypatchError, match="Every embedding needs a label"):
        nearest_ranks(np.ones((3, 2)), [0, 1])
    with pytest.raises(KeypatchError, match="nan or inf"):
        nearest_ranks(np.full((2, 2), np.nan), [0, 0])
    with pytest.raises(KeypatchError, match="3 labels and 2 clusters"):
        agreement([0, 1, 2], [0, 1])
    with pytest.raises(KeypatchError, match=r"a list, found shape \(2, 2\)"):
        agreement(np.ones((2, 2)), [0, 1])

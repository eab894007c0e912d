"""Scores of embeddings with classes: retrieval among all others, and how well clusters agree with the classes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError
from keypatch.metrics.ranking import BLOCK

_ENOUGH = 1e-6  # a relative fall of k-means' squared error below this ends it
_ROUNDING = 1e-12  # of the squared lengths: nearer together, two squared distances are taken for equal


def recall_at(embeddings: ArrayLike, labels: ArrayLike, ks: Sequence[int]) -> tuple[float, ...]:
    """Recall@K (Song et al. 2016) for each K: the share of rows with one of their class among the K nearest others.

    In [0, 1]; nan without rows. Euclidean distance. Among equal distances other classes come first, so constant
    embeddings find nothing. A row that is alone in its class is never found and counts as a miss.
    """
    ranks = nearest_ranks(embeddings, labels)
    return tuple(float(np.mean(ranks <= k)) if ranks.size else float("nan") for k in ks)


def nearest_ranks(embeddings: ArrayLike, labels: ArrayLike) -> NDArray[np.float64]:
    """(n,): the place, from 1, of the nearest row of the same class among all other rows; inf where there is none.

    In blocks of rows, without sorting: the place is one more than the number of rows of other classes not farther.
    """
    rows, classes = np.asarray(embeddings, np.float64), _numbered(labels)
    if rows.ndim != 2 or len(rows) != len(classes):
        raise KeypatchError(f"Every embedding needs a label: found shapes {rows.shape} and {classes.shape}.")
    if not np.isfinite(rows).all():
        raise KeypatchError("The embeddings hold nan or inf.")
    squares = np.einsum("ij,ij->i", rows, rows)
    ranks = np.empty(len(rows))
    step = max(1, BLOCK // max(1, len(rows)))
    for start in range(0, len(rows), step):
        block = slice(start, start + step)
        distances = squares[block, None] + squares - 2 * (rows[block] @ rows.T)
        same = classes[block, None] == classes
        places = np.arange(len(distances))
        others = same.copy()
        others[places, start + places] = False
        nearest = np.where(others, distances, np.inf).min(axis=1)
        slack = _ROUNDING * (squares[block] + squares.max())
        nearer = (distances <= (nearest + slack)[:, None]) & ~same
        ranks[block] = np.where(others.any(axis=1), nearer.sum(axis=1) + 1, np.inf)
    return ranks


@dataclass(frozen=True)
class Agreement:
    """How clusters agree with classes; each in [0, 1], nan where it is not defined.

    nmi: mutual information over the arithmetic mean of the entropies; nan for one cluster and one class.
    precision, recall, f1: over pairs of rows; found are pairs inside a cluster, right those of one class.
    rand: share of the pairs that clusters and classes judge alike.
    purity: share of the rows that are of their cluster's commonest class.
    """

    nmi: float
    precision: float
    recall: float
    f1: float
    rand: float
    purity: float


def agreement(labels: ArrayLike, clusters: ArrayLike) -> Agreement:
    """Scores of a clustering, from the counts of rows of class j in cluster k; empty clusters do not matter."""
    classes, groups = _numbered(labels), _numbered(clusters)
    if classes.shape != groups.shape:
        raise KeypatchError(f"Every label needs a cluster: found {len(classes)} labels and {len(groups)} clusters.")
    n = len(classes)
    if n == 0:
        return Agreement(*[float("nan")] * 6)
    by_class, by_group = np.bincount(classes), np.bincount(groups)
    cells, shared = np.unique(groups * len(by_class) + classes, return_counts=True)  # the counts that are not 0
    group, of_class = np.divmod(cells, len(by_class))
    information = float(np.sum(shared / n * np.log(n * shared / (by_group[group] * by_class[of_class]))))
    entropy = _entropy(by_class) + _entropy(by_group)
    both, found, wanted, pairs = _pairs(shared), _pairs(by_group), _pairs(by_class), n * (n - 1) // 2
    commonest = np.zeros(len(by_group), np.int64)
    np.maximum.at(commonest, group, shared)
    return Agreement(
        nmi=_ratio(min(max(2 * information, 0.0), entropy), entropy),  # rounding stays inside 0..1
        precision=_ratio(both, found),
        recall=_ratio(both, wanted),
        f1=_ratio(2 * both, found + wanted),
        rand=_ratio(pairs - found - wanted + 2 * both, pairs),
        purity=_ratio(int(commonest.sum()), n),
    )


def drawn_agreement(labels: ArrayLike, clusters: ArrayLike) -> Callable[[NDArray[np.int64]], tuple[float, float]]:
    """The nmi and f1 of a clustering as a statistic of how often each row is drawn, for `bootstrap`.

    A row drawn twice would be a pair that is always right, and would make small classes look purer than they are. So
    f1 leaves out pairs of a row with itself, and nmi averages the rows' terms of information and entropy under the
    frequencies of all rows: to first order the same, without that bias. Each row drawn once gives `agreement`.
    """
    classes, groups = _numbered(labels), _numbered(clusters)
    cells = _numbered(groups * (classes.max() + 1) + classes)
    sizes = [np.bincount(of)[of] for of in (cells, groups, classes)]  # of each row's cell, cluster and class
    information = np.log(len(classes) * sizes[0] / (sizes[1] * sizes[2]))
    entropy = np.log(len(classes) / sizes[1]) + np.log(len(classes) / sizes[2])

    def statistic(counts: NDArray[np.int64]) -> tuple[float, float]:
        itself = counts @ counts
        both, found, wanted = (np.square(np.bincount(of, counts)).sum() - itself for of in (cells, groups, classes))
        return _ratio(2 * float(counts @ information), float(counts @ entropy)), _ratio(2 * both, found + wanted)

    return statistic


def _numbered(labels: ArrayLike) -> NDArray[np.int64]:
    given = np.asarray(labels)
    if given.ndim != 1:
        raise KeypatchError(f"Labels must be a list, found shape {given.shape}.")
    return np.unique(given, return_inverse=True)[1].astype(np.int64)


def _pairs(counts: NDArray[np.int64]) -> int:
    return int(np.sum(counts * (counts - 1) // 2))  # int64: 60,000 rows make 1.8e9 pairs


def _entropy(counts: NDArray[np.int64]) -> float:
    shares = counts / counts.sum()
    return float(-np.sum(shares * np.log(shares)))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def kmeans(rows: ArrayLike, k: int, seed: int, iterations: int = 1000) -> NDArray[np.int64]:
    """The cluster of each row (n, d). The start is k different random rows, as in Song et al. 2016, not k-means++.

    It ends when the squared error no longer falls, or after `iterations`. A cluster that loses all rows keeps its
    centre and may end empty.
    """
    points = np.asarray(rows, np.float32)
    if points.ndim != 2 or not 1 <= k <= len(points):
        raise KeypatchError(f"k-means needs (n, d) rows and 1 to n clusters, found {points.shape} and k={k}.")
    centres = points[np.random.default_rng(seed).choice(len(points), k, replace=False)].copy()
    clusters, error = _nearest(points, centres)
    for _ in range(iterations):
        before = error
        order = np.argsort(clusters, kind="stable")
        filled, starts, sizes = np.unique(clusters[order], return_index=True, return_counts=True)
        centres[filled] = np.add.reduceat(points[order], starts, dtype=np.float64) / sizes[:, None]
        clusters, error = _nearest(points, centres)
        if error >= before * (1 - _ENOUGH):
            break
    return clusters


def _nearest(points: NDArray[np.float32], centres: NDArray[np.float32]) -> tuple[NDArray[np.int64], float]:
    """The nearest centre of each point, and the sum of squared distances to them."""
    squares = np.einsum("ij,ij->i", centres, centres)
    nearest = np.empty(len(points), np.int64)
    step = max(1, BLOCK // len(centres))
    for start in range(0, len(points), step):
        nearest[start : start + step] = (squares - 2 * (points[start : start + step] @ centres.T)).argmin(axis=1)
    apart = points - centres[nearest]
    return nearest, float(np.einsum("ij,ij->", apart, apart, dtype=np.float64))

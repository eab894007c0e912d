"""Lloyd's k-means, as the clustering scores of embeddings need it."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError
from keypatch.metrics.ranking import BLOCK

_ENOUGH = 1e-6  # a relative fall of the squared error below this ends it


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

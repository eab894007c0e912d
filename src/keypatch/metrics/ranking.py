"""Scores of nearest-neighbour search."""

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError

BLOCK = 16_000_000  # similarities held at once: 64 MB of float32


def rank1(queries: NDArray[np.float32], gallery: NDArray[np.float32], target: NDArray[np.int64]) -> float:
    """Share of the queries (n, d) strictly nearer to gallery[target] than to every other row; nan without queries.

    Euclidean distance. A tie with another row counts as a miss. The nearest other row is found by a float32 product and
    then compared with the target through coordinate differences, so equal rows are equal.
    """
    hits = rank1_hits(queries, gallery, target)
    return float(hits.mean()) if len(hits) else float("nan")


def rank1_hits(
    queries: NDArray[np.float32], gallery: NDArray[np.float32], target: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """(n,): which of the queries `rank1` counts."""
    _check(queries, gallery, target)
    if len(gallery) == 1:
        return np.ones(len(queries), bool)
    squares = np.einsum("ij,ij->i", gallery, gallery)
    step = max(1, BLOCK // max(1, len(gallery)))
    hits = np.empty(len(queries), bool)
    for start in range(0, len(queries), step):
        block, wanted = queries[start : start + step], target[start : start + step]
        scores = squares - 2 * (block @ gallery.T)  # squared distance without the query's own square
        scores[np.arange(len(block)), wanted] = np.inf
        rival = gallery[scores.argmin(axis=1)]
        hits[start : start + step] = _squared(block, gallery[wanted]) < _squared(block, rival)
    return hits


def _squared(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
    difference = first - second
    return np.asarray(np.einsum("ij,ij->i", difference, difference))


def _check(queries: NDArray[np.float32], gallery: NDArray[np.float32], target: NDArray[np.int64]) -> None:
    if queries.ndim != 2 or gallery.ndim != 2 or queries.shape[1] != gallery.shape[1]:
        raise KeypatchError(
            f"Queries and gallery must be (n, d) and (m, d) with the same d, found {queries.shape} and {gallery.shape}."
        )
    if target.shape != (len(queries),):
        raise KeypatchError(f"Every query needs one target: {len(queries)} queries, targets of shape {target.shape}.")
    if target.size and (target.min() < 0 or target.max() >= len(gallery)):
        raise KeypatchError(f"A target lies outside the gallery of {len(gallery)} rows.")
    if not (np.isfinite(queries).all() and np.isfinite(gallery).all()):
        raise KeypatchError("The descriptors hold nan or inf.")

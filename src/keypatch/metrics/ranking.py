"""Scores of nearest-neighbour search."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError

BLOCK = 16_000_000  # similarities held at once: 64 MB of float32
_CHUNK = 4096  # differences held at once: those of 128 columns, 4 MB of float64, stay in the cache

Rows = NDArray[np.float32]
Labels = NDArray[np.int64]
Precision = TypeVar("Precision", bound=np.floating)


def rank1(queries: Rows, gallery: Rows, target: Labels) -> float:
    """Share of the queries (n, d) strictly nearer to gallery[target] than to every other row; nan without queries.

    Euclidean distance. A tie with another row counts as a miss.
    """
    hits = rank1_hits(queries, gallery, target)
    return float(hits.mean()) if len(hits) else float("nan")


def rank1_hits(queries: Rows, gallery: Rows, target: Labels) -> NDArray[np.bool_]:
    """(n,): which of the queries `rank1` counts."""
    _check(queries, gallery, target)
    if not len(queries):
        return np.empty(0, bool)
    to_rival = stranger_distances(queries, target, gallery, np.arange(len(gallery)))
    return np.asarray(squared_distances(queries, gallery[target]) < to_rival)


def stranger_distances(queries: Rows, labels: Labels, gallery: Rows, gallery_labels: Labels) -> NDArray[np.float64]:
    """(n,): squared, from each query to the nearest row of the gallery with another label; inf where there is none.

    The row is found by a float32 product of centred rows, and where rounding leaves the choice open by one of float64.
    So descriptors that hardly differ, as those of a collapsed network, are still told apart.
    """
    centre = gallery.mean(axis=0, dtype=np.float64).astype(np.float32)
    nearest, sure = _nearest_strangers(queries, labels, gallery, gallery_labels, centre)
    unsure = np.flatnonzero(~sure)
    if unsure.size:
        again = queries[unsure], labels[unsure], gallery, gallery_labels, centre.astype(np.float64)
        nearest[unsure], _ = _nearest_strangers(*again)
    apart = squared_distances(queries, gallery[nearest])
    apart[gallery_labels[nearest] == labels] = np.inf
    return apart


def _nearest_strangers(
    queries: Rows, labels: Labels, gallery: Rows, gallery_labels: Labels, centre: NDArray[np.floating]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """(n,): the nearest row with another label, and whether no other can be nearer; as precise as the centre's type."""
    rows = gallery - centre
    squares = squared_lengths(rows)
    # of terms that add up to (|a| + |b|)**2: d products, two sums, and the centred coordinates of both rows
    rounding = (rows.shape[1] + 6) * np.finfo(rows.dtype).eps / 2
    nearest, sure = np.empty(len(queries), np.int64), np.empty(len(queries), bool)
    step = max(1, BLOCK // len(rows))
    for start in range(0, len(queries), step):
        part = slice(start, start + step)
        block = queries[part] - centre
        scores = block @ rows.T
        scores *= -2
        scores += squares  # squared distance without the query's own square
        np.copyto(scores, np.inf, where=labels[part, None] == gallery_labels)
        first = scores.argmin(axis=1)[:, None]
        least = np.take_along_axis(scores, first, axis=1)[:, 0]
        np.put_along_axis(scores, first, np.inf, axis=1)
        error = rounding * np.square(np.sqrt(squared_lengths(block)) + np.sqrt(squares.max()))
        nearest[part], sure[part] = first[:, 0], scores.min(axis=1) >= least + 2 * error
    return nearest, sure


def squared_distances(first: Rows, second: Rows) -> NDArray[np.float64]:
    """(n,): from each row of the first to the same row of the second; from differences, so equal rows are at 0."""
    found = np.empty(len(first))
    for start in range(0, len(first), _CHUNK):
        part = slice(start, start + _CHUNK)
        found[part] = squared_lengths(first[part].astype(np.float64) - second[part])
    return found


def squared_lengths(rows: NDArray[Precision]) -> NDArray[Precision]:
    """(n,) of rows (n, d), in their own precision."""
    return np.asarray(np.einsum("ij,ij->i", rows, rows))


def _check(queries: Rows, gallery: Rows, target: Labels) -> None:
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

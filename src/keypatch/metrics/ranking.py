"""Scores of nearest-neighbour search, among all patches of a set or inside each image."""

from collections.abc import Iterator
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.metrics.verification import average_precision

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


def reference_image_precisions(
    descriptors: NDArray[np.float32], point_id: NDArray[np.int64], image_id: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Average precision in [0, 1] of each image, in the order of the ids; empty where no image can be scored.

    Within an image, every ordered pair (anchor, positive) of patches of one point meets the hardest negative of its
    anchor: the nearest patch of another point. The pair is right if its positive is strictly nearer, so a tie is wrong
    and constant descriptors score 0. Pairs are ordered by the ratio of the smaller to the larger of the two distances,
    1 where both are 0; equal ratios are one threshold. Images without such a pair or without a negative are left out.
    """
    if descriptors.ndim != 2 or not len(descriptors) == len(point_id) == len(image_id):
        raise KeypatchError(
            f"Every row needs a point and an image: descriptors of shape {descriptors.shape}, {len(point_id)} points, "
            f"{len(image_id)} images."
        )
    if not np.isfinite(descriptors).all():
        raise KeypatchError("The descriptors hold nan or inf.")
    order = np.argsort(image_id, kind="stable")
    starts = np.unique(image_id[order], return_index=True)[1]
    precisions = [_precision(descriptors[rows], point_id[rows]) for rows in np.split(order, starts[1:])]
    return np.array([each for each in precisions if each is not None])


def _precision(rows: NDArray[np.float32], points: NDArray[np.int64]) -> float | None:
    """Of the patches of one image; None where nothing can be asked."""
    sizes = np.unique(points, return_counts=True)[1]
    if len(sizes) < 2 or sizes.max() < 2:
        return None
    to_positive, to_negative = np.concatenate(list(_distances(rows, points)), axis=1)
    right = to_positive < to_negative
    if right.all() or not right.any():
        return float(right.all())  # not defined for one kind alone: all right is 1, none is 0
    smaller, larger = np.minimum(to_positive, to_negative), np.maximum(to_positive, to_negative)
    ratio = np.divide(smaller, larger, out=np.ones_like(larger), where=larger > 0)
    return average_precision(ratio, right)


def _distances(rows: NDArray[np.float32], points: NDArray[np.int64]) -> Iterator[NDArray[np.float64]]:
    """Squared distances of every pair to the positive and to the hardest negative, (2, pairs of a block of anchors).

    Squared ones have the same order and so have their ratios.
    """
    to_negative = stranger_distances(rows, points, rows, points)
    step = max(1, BLOCK // len(rows))
    for start in range(0, len(rows), step):
        anchors, positives = np.nonzero(points[start : start + step, None] == points)
        anchors += start
        others = anchors != positives
        anchors, positives = anchors[others], positives[others]
        yield np.stack([squared_distances(rows[anchors], rows[positives]), to_negative[anchors]])

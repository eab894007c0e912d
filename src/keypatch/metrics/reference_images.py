"""Matching inside an image, after "Brown PhotoTour revisited" (Mishkin): does the ratio test tell right from wrong?"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError
from keypatch.metrics.ranking import BLOCK, squared_distances, stranger_distances
from keypatch.metrics.verification import average_precision


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

"""HPatches matching: is the nearest patch of another image the same point, and are right matches nearer than wrong?"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from keypatch.benchmarks.hpatches_descriptors import IMAGES, LEVELS, StripDescriptors
from keypatch.benchmarks.hpatches_distances import (
    TILE,
    Distance,
    Indices,
    Rows,
    bounded_distances,
    exact_distances,
    whole_rows,
)
from keypatch.metrics.listed import ApRule, Ties, false_before, listed_precision


@dataclass(frozen=True, eq=False)
class Matching:
    """Shares of the ref patches, (sequences, 3 levels, 5 images)."""

    precision: NDArray[np.float64]  # average precision
    success: NDArray[np.float64]  # matched right
    alone: NDArray[np.float64]  # matched right, and no other patch is as near: rank-1


def match_strips(descriptors: StripDescriptors, distance: Distance, ties: Ties, ap: ApRule) -> Matching:
    """Each ref patch goes to its nearest patch of each other strip of its sequence, without ratio or mutual test.

    ties: "public" takes the first of equally near patches, "pessimistic" takes such a match as wrong.
    """
    shape = len(descriptors.names), len(LEVELS), IMAGES
    matching = Matching(np.empty(shape), np.empty(shape), np.empty(shape))
    for place in np.ndindex(shape):
        sequence, level, image = place
        ref, strip = descriptors.strip(sequence, 0), descriptors.strip(sequence, IMAGES * level + image + 1)
        nearest, apart, alone = find_nearest(ref, strip, distance)
        first = nearest == np.arange(len(ref))
        right = first & alone if ties == "pessimistic" else first
        matching.precision[place] = listed_precision(false_before(apart, right, ties), len(ref), ap)
        matching.success[place] = right.mean()
        matching.alone[place] = (first & alone).mean()
    return matching


def find_nearest(
    first: Rows, second: Rows, distance: Distance
) -> tuple[Indices, NDArray[np.float64], NDArray[np.bool_]]:
    """For each row of the first: the nearest row of the second, the first of equals; how far; whether it is alone."""
    nearest = np.empty(len(first), np.int64)
    apart, alone = np.empty(len(first)), np.ones(len(first), bool)
    step = max(1, TILE // len(second))
    for start in range(0, len(first), step):
        part = slice(start, start + step)
        nearest[part], sure = _surely_nearest(first[part], second, distance)
        unsure = start + np.flatnonzero(~sure)
        distances = whole_rows(first[unsure], second, distance)
        nearest[unsure] = distances.argmin(1).numpy()
        alone[unsure] = (distances == distances.amin(1, keepdim=True)).sum(1).numpy() == 1
        apart[part] = exact_distances(first[part], second[nearest[part]], distance)
    return nearest, apart, alone


def _surely_nearest(first: Rows, second: Rows, distance: Distance) -> tuple[Indices, NDArray[np.bool_]]:
    """The nearest row by rounded distances, and whether no other row can be as near."""
    bounded = bounded_distances(first, second, distance)
    least, nearest = bounded.values.min(1)
    runner_up = bounded.values.scatter_(1, nearest[:, None], torch.inf).amin(1)
    return nearest.numpy(), (runner_up > least + 2 * bounded.error).numpy()

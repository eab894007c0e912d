"""HPatches matching and retrieval: is the nearest patch of another image, or of all images, the same point?"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from keypatch.benchmarks.hpatches.descriptors import IMAGES, LEVELS, StripDescriptors
from keypatch.benchmarks.hpatches.distances import (
    TILE,
    Distance,
    Indices,
    bounded_distances,
    exact_distances,
    whole_rows,
)
from keypatch.benchmarks.hpatches.lists import Table, Tasks
from keypatch.metrics.listed import ApRule, Ties, false_before, listed_precision
from keypatch.metrics.ranking import Rows

POOLS = (100, 500, 1000, 5000, 10000, 15000)  # patches searched, the five right ones among them
ALL = "all"


@dataclass(frozen=True, eq=False)
class StripMatches:
    """Shares of the ref patches, (sequences, 3 levels, 5 images)."""

    precision: NDArray[np.float64]  # average precision
    success: NDArray[np.float64]  # matched right
    alone: NDArray[np.float64]  # matched right, and no other patch is as near: rank-1


def match_strips(descriptors: StripDescriptors, distance: Distance, ties: Ties, ap: ApRule) -> StripMatches:
    """Each ref patch goes to its nearest patch of each other strip of its sequence, without ratio or mutual test.

    ties: "public" takes the first of equally near patches, "pessimistic" takes such a match as wrong.
    """
    shape = len(descriptors.names), len(LEVELS), IMAGES
    matching = StripMatches(np.empty(shape), np.empty(shape), np.empty(shape))
    for place in np.ndindex(shape):
        sequence, level, image = place
        ref, strip = descriptors.strip(sequence, 0), descriptors.strip(sequence, IMAGES * level + image + 1)
        nearest, apart, alone = nearest_rows(ref, strip, distance)
        first = nearest == np.arange(len(ref))
        right = first & alone if ties == "pessimistic" else first
        matching.precision[place] = listed_precision(false_before(apart, right, ties), len(ref), ap)
        matching.success[place] = right.mean()
        matching.alone[place] = (first & alone).mean()
    return matching


def nearest_rows(
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
    distances, error = bounded_distances(first, second, distance)
    least, nearest = distances.min(1)
    runner_up = distances.scatter_(1, nearest[:, None], torch.inf).amin(1)
    return nearest.numpy(), (runner_up > least + 2 * error).numpy()


@dataclass(frozen=True, eq=False)
class Retrieval:
    """The average precision of every query, (queries, 3 levels, pools)."""

    precision: NDArray[np.float64]
    pools: tuple[str, ...]  # "100", ... as far as every query has so many distractors, and "all"


def retrieve(descriptors: StripDescriptors, tasks: Tasks, distance: Distance, ties: Ties, ap: ApRule) -> Retrieval:
    """Each query among the distractors of other sequences than its own, the first of the list for smaller pools.

    ties: of a right patch and a distractor equally near, the right one comes first ("public") or last ("pessimistic").
    """
    rows = descriptors.rows
    queries = descriptors.places(tasks.queries[:, 0], 0, np.array(0), tasks.queries[:, 1])
    distractors = descriptors.places(tasks.distractors[:, 0], 0, np.array(0), tasks.distractors[:, 1])
    asked = np.unique(tasks.queries[:, 0])
    left = len(distractors) - np.bincount(tasks.distractors[:, 0], minlength=len(descriptors.names))
    limits = np.array([pool - IMAGES for pool in POOLS if pool - IMAGES <= left[asked].min()])
    precision = np.full((len(queries), len(LEVELS), len(limits) + 1), np.nan)
    for sequence in asked:
        mine = np.flatnonzero(tasks.queries[:, 0] == sequence)
        others = rows[distractors[tasks.distractors[:, 0] != sequence]]
        step = max(1, TILE // max(1, len(others)))
        for start in range(0, len(mine) if len(others) else 0, step):
            part = mine[start : start + step]
            right = _right_distances(descriptors, tasks.queries[part], distance)
            before = count_nearer(rows[queries[part]], others, right, limits, distance, ties)
            by_level = before.reshape(len(part), -1, len(LEVELS), IMAGES)  # (queries, pools, 3, 5)
            precision[part] = listed_precision(np.sort(by_level, axis=-1), IMAGES, ap).swapaxes(1, 2)
    return Retrieval(precision, (*map(str, POOLS[: len(limits)]), ALL))


def _right_distances(descriptors: StripDescriptors, queries: Table, distance: Distance) -> NDArray[np.float64]:
    """(queries, 15): to the patches of the same point, level by level."""
    sequence, row = queries.T
    ref = descriptors.rows[descriptors.places(sequence, 0, np.array(0), row)]
    others = (
        descriptors.rows[descriptors.places(sequence, level, np.array(image), row)]
        for level in range(len(LEVELS))
        for image in range(1, IMAGES + 1)
    )
    return np.stack([exact_distances(ref, patches, distance) for patches in others], axis=1)


def count_nearer(
    queries: Rows, others: Rows, right: NDArray[np.float64], limits: Indices, distance: Distance, ties: Ties
) -> Indices:
    """(n, limits + 1, k): how many of the first others, up to each limit and all, are nearer than each of right (n, k).

    An other as near as a right one counts only with the pessimistic tie rule.
    """
    query, other, apart = _candidates(queries, others, right, distance)
    is_before = np.less if ties == "pessimistic" else np.less_equal
    beyond = np.zeros(len(other), np.int64)  # how many right ones come before this other
    for threshold in right.T:  # one after the other: all at once would take hundreds of MB
        beyond += is_before(threshold[query], apart)
    pool = np.searchsorted(limits, other, side="right")
    shape = len(queries), len(limits) + 1, right.shape[1] + 1
    cells = np.bincount(np.ravel_multi_index((query, pool, beyond), shape), minlength=int(np.prod(shape)))
    before = cells.reshape(shape)[:, :, :-1].cumsum(axis=2).cumsum(axis=1)  # in the order of thresholds
    rank = np.argsort(np.argsort(right, axis=1), axis=1)
    return np.take_along_axis(before, rank[:, None, :], axis=2)


def _candidates(
    queries: Rows, others: Rows, right: NDArray[np.float64], distance: Distance
) -> tuple[Indices, Indices, NDArray[np.float64]]:
    """Query, other and distance of all pairs that may be as near as the farthest right one.

    A distance is exact where rounding could change its order among those of the right ones.
    """
    values, error = (each.numpy() for each in bounded_distances(queries, others, distance))
    error = error.astype(np.float64)
    farthest = right.max(axis=1) + error
    flat = np.flatnonzero(~(values > farthest[:, None]))  # what overflowed stays
    query, other = np.divmod(flat, len(others))
    apart = values.ravel()[flat].astype(np.float64)
    sure = np.ones(len(flat), bool)
    for threshold in right.T:
        sure &= np.abs(apart - threshold[query]) > error[query]
    unsure = np.flatnonzero(~sure)
    apart[unsure] = exact_distances(queries[query[unsure]], others[other[unsure]], distance)
    return query, other, apart

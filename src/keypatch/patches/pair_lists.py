"""Pair lists drawn from a set: the same matches in an easy and in a hard list, and as many pairs of other points."""

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.patches.patch_set import Pairs

Indices = NDArray[np.int64]
NEAR_RANKS = (5, 50)  # a hard negative is one of the 6th to 50th nearest: near, but not always the same odd patches
CANDIDATES = 20_000  # patches that hard negatives are looked for among: 1.6 GB of likenesses would be 20,000 anchors
CHUNK = 1024  # anchors whose likenesses are in memory at once


def draw_pair_lists(
    patches: NDArray[np.uint8],
    point_id: Indices,
    matches: int,
    rng: np.random.Generator,
    coinciding: NDArray[np.int64] | None = None,
) -> tuple[Pairs, ...]:
    """A hard and an easy list of up to this many matches and as many others; none if there are no two points to pair.

    A point gives a second match only when all have given one. `coinciding` (m, 2) are pairs of points that may show the
    same place: they are never told apart in the hard list, where nearness would choose them.
    """
    first, second = _draw_matches(point_id, matches, rng)
    if not len(first) or len(np.unique(point_id)) < 2:
        return ()
    everything = np.arange(len(point_id))
    candidates = np.sort(rng.permutation(everything)[:CANDIDATES])
    hard_negatives = _hard_negatives(patches, first, candidates, point_id, rng, coinciding)
    easy_negatives = another_point(first, everything, point_id, rng)
    order = rng.permutation(2 * len(first))
    return listed("hard", first, second, hard_negatives, order), listed("m50", first, second, easy_negatives, order)


def _draw_matches(point_id: Indices, matches: int, rng: np.random.Generator) -> tuple[Indices, Indices]:
    """Two patches of a point each: the k-th pairs of all points come before the (k + 1)-th of any."""
    order = np.argsort(point_id, kind="stable")
    _, starts, sizes = np.unique(point_id[order], return_index=True, return_counts=True)
    shuffled = order[np.lexsort((rng.random(len(order)), point_id[order]))]  # each point's patches in random order
    pairs = list[tuple[int, int]]()
    for turn in range(int(sizes.max(initial=0)) // 2):
        points = rng.permutation(np.flatnonzero(sizes >= 2 * (turn + 1)))
        pairs += [(shuffled[starts[p] + 2 * turn], shuffled[starts[p] + 2 * turn + 1]) for p in points.tolist()]
        if len(pairs) >= matches:
            break
    first, second = np.array(pairs[:matches], np.int64).reshape(-1, 2).T
    return first, second


def _hard_negatives(
    patches: NDArray[np.uint8],
    first: Indices,
    candidates: Indices,
    point_id: Indices,
    rng: np.random.Generator,
    coinciding: NDArray[np.int64] | None,
) -> Indices:
    rivals = {point: {point} for point in np.unique(point_id[first]).tolist()}
    for one, other in [] if coinciding is None else coinciding.tolist():
        for here, there in ((one, other), (other, one)):
            if here in rivals:
                rivals[here].add(there)
    points = point_id[candidates]
    columns = {point: np.flatnonzero(points == point) for point in set().union(*rivals.values())}
    small, chosen = small_pixels(patches, candidates), np.empty(len(first), np.int64)
    ranks = rng.random(len(first))
    for start in range(0, len(first), CHUNK):
        anchors = first[start : start + CHUNK]
        likeness = small_pixels(patches, anchors) @ small.T
        for row, point in enumerate(point_id[anchors].tolist()):
            for rival in rivals[point]:
                likeness[row, columns[rival]] = -np.inf
        nearest = np.argsort(-likeness, axis=1, kind="stable")[:, : NEAR_RANKS[1]]
        usable = np.isfinite(np.take_along_axis(likeness, nearest, axis=1)).sum(axis=1)
        least = np.minimum(NEAR_RANKS[0], np.maximum(usable - 1, 0))
        rank = least + (ranks[start : start + CHUNK] * np.maximum(usable - least, 1)).astype(np.int64)
        chosen[start : start + CHUNK] = candidates[nearest[np.arange(len(anchors)), rank]]
    same = np.flatnonzero(point_id[chosen] == point_id[first])  # only where all candidates are rivals
    chosen[same] = another_point(first[same], np.arange(len(point_id)), point_id, rng)
    return chosen


def listed(name: str, first: Indices, second: Indices, negatives: Indices, order: Indices) -> Pairs:
    """The matches (first, second) and the others (first, negatives) as one list in this order."""
    is_match = np.repeat([True, False], len(first))
    lines = len(order)
    firsts, seconds = np.concatenate([first, first]), np.concatenate([second, negatives])
    return Pairs(f"{name}_{lines}_{lines}_0", firsts[order], seconds[order], is_match[order])


def another_point(first: Indices, others: Indices, point_id: Indices, rng: np.random.Generator) -> Indices:
    """For each patch a random one of `others` that shows another point."""
    chosen = rng.choice(others, len(first))
    while len(same := np.flatnonzero(point_id[chosen] == point_id[first])):
        chosen[same] = rng.choice(others, len(same))
    return chosen


def small_pixels(patches: NDArray[np.uint8], indices: Indices) -> NDArray[np.float32]:
    """(n, 256): 16x16 means of these patches, each with mean 0 and length 1."""
    small = np.empty((len(indices), 16, 16), np.uint8)
    for index, target in zip(indices.tolist(), small, strict=True):
        cv2.resize(patches[index], (16, 16), dst=target, interpolation=cv2.INTER_AREA)
    rows = small.reshape(len(indices), -1).astype(np.float32)
    rows -= rows.mean(axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6))

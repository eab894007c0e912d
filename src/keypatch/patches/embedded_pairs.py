"""Test pairs of the embedded data: half of the negatives look alike in pixels."""

import cv2
import numpy as np
from numpy.typing import NDArray

from keypatch.patches.embedded_classes import MadeClasses
from keypatch.patches.patch_set import Pairs

Indices = NDArray[np.int64]

NEAR_RANKS = (5, 50)  # a hard negative is one of the 6th to 50th nearest: near, but not always the same odd patches


def make_pairs(made: MadeClasses, matches: int, rng: np.random.Generator) -> tuple[Pairs, Pairs]:
    """A hard and an easy list, each with up to this many matches and as many negatives.

    A pair is a reference patch and a patch of a random view. Both lists have the same matches. Of the hard list's
    negatives one half is near in pixels, the easy list's are all random.
    """
    patches, point_id, is_reference = made.patches, made.point_id, made.is_reference
    others = np.flatnonzero(~is_reference)
    second = rng.permutation(others)[:matches]
    reference_of = dict(zip(point_id[is_reference].tolist(), np.flatnonzero(is_reference).tolist(), strict=True))
    first = np.array([reference_of[point] for point in point_id[second].tolist()], np.int64)
    hard_negatives = _another_point(first, others, point_id, rng)
    hard_half = np.arange(0, len(first), 2)
    hard_negatives[hard_half] = _near_in_pixels(patches, first[hard_half], others, point_id, rng)
    random_negatives = _another_point(first, others, point_id, rng)
    order = rng.permutation(2 * len(first))
    return _listed("hard", first, second, hard_negatives, order), _listed("m50", first, second, random_negatives, order)


def _listed(name: str, first: Indices, second: Indices, negatives: Indices, order: Indices) -> Pairs:
    is_match = np.repeat([True, False], len(first))
    lines = len(order)
    firsts, seconds = np.concatenate([first, first]), np.concatenate([second, negatives])
    return Pairs(f"{name}_{lines}_{lines}_0", firsts[order], seconds[order], is_match[order])


def _another_point(first: Indices, others: Indices, point_id: Indices, rng: np.random.Generator) -> Indices:
    """For each patch a random one of `others` that shows another point."""
    chosen = rng.choice(others, len(first))
    while len(same := np.flatnonzero(point_id[chosen] == point_id[first])):
        chosen[same] = rng.choice(others, len(same))
    return chosen


def _near_in_pixels(
    patches: NDArray[np.uint8], first: Indices, others: Indices, point_id: Indices, rng: np.random.Generator
) -> Indices:
    """For each patch one of its nearest among `others` of other points, by small normalized pixels."""
    likeness = _small(patches[first]) @ _small(patches[others]).T
    likeness[point_id[first][:, None] == point_id[others]] = -np.inf
    nearest = np.argsort(-likeness, axis=1, kind="stable")[:, slice(*NEAR_RANKS)]
    return others[nearest[np.arange(len(first)), rng.integers(0, nearest.shape[1], len(first))]]


def _small(patches: NDArray[np.uint8]) -> NDArray[np.float32]:
    """(n, 256): 16x16 means of a patch with mean 0 and length 1."""
    small = np.stack([cv2.resize(patch, (16, 16), interpolation=cv2.INTER_AREA) for patch in patches])
    rows = small.reshape(len(patches), -1).astype(np.float32)
    rows -= rows.mean(axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-6))

"""PhotoTour patch verification (Brown, Winder, Hua): are the two patches of a pair the same point?"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.result import Result, provenance_of
from keypatch.describers.protocol import CHUNK, Describer, Progress, describe_all
from keypatch.errors import DataError
from keypatch.metrics import (
    Curve,
    FprRule,
    average_precision,
    fpr95,
    precision_recall_curve,
    rank1,
    roc_auc,
    roc_curve,
    spread_moments,
)
from keypatch.patches.opening import open_patches
from keypatch.patches.pair_lists import find_pairs
from keypatch.patches.patch_set import Pairs, PatchSet

SPREAD_PAIRS = 100_000


def evaluate_ubc(
    describer: Describer, data: str | Path | PatchSet, rule: FprRule = "rank", progress: Progress | None = None
) -> Result:
    """Every pair list of a patch set, and rank-1 over its points.

    Scores for each list: "fpr95.<list>" by the given rule, "ap.<list>" (average precision), "auc.<list>" (area under
    the ROC curve), with the curves "pr.<list>" and "roc.<list>"; "rank1" is the share of points whose first patch is
    nearer to the point's last patch than to the last patch of every other point; "spread.m1" and "spread.dm2" are GOR's
    M1 and d times M2 over random patches of different points (`spread_over_points`).
    """
    patch_set = data if isinstance(data, PatchSet) else open_patches(data)
    lists = find_pairs(patch_set.folder, len(patch_set), patch_set.point_id) if patch_set.folder else ()
    if not lists:
        raise DataError(
            f"{patch_set.name} has no list of pairs (such as m50_100000_100000_0.txt) to score. "
            "For strips of HPatches choose the benchmark hpatches."
        )
    descriptors = describe_all(describer, patch_set, progress)
    scores: dict[str, float] = {}
    curves: dict[str, Curve] = {}
    for pairs in lists:
        distances = squared_distances(descriptors, pairs)
        scores[f"fpr95.{pairs.name}"] = fpr95(distances, pairs.is_match, rule)
        scores[f"ap.{pairs.name}"] = average_precision(distances, pairs.is_match)
        scores[f"auc.{pairs.name}"] = roc_auc(distances, pairs.is_match)
        curves[f"pr.{pairs.name}"] = precision_recall_curve(distances, pairs.is_match).thinned()
        curves[f"roc.{pairs.name}"] = roc_curve(distances, pairs.is_match).thinned()
    scores["rank1"] = rank1_over_points(descriptors, patch_set)
    m1, m2 = spread_over_points(descriptors, patch_set)
    scores["spread.m1"], scores["spread.dm2"] = m1, describer.dim * m2
    return Result(
        benchmark="ubc",
        descriptor=describer.name,
        settings={"data": patch_set.name, "rule": rule, "pairs": {pairs.name: len(pairs) for pairs in lists}},
        scores=scores,
        curves=curves,
        provenance=provenance_of(describer, hash_patches(patch_set, lists)),
    )


def squared_distances(descriptors: NDArray[np.float32], pairs: Pairs) -> NDArray[np.float32]:
    """Squared Euclidean distance of each pair, from differences: 2 - 2s would lose near-identical vectors in float32.

    Squared, since ranks are all that is asked for and the root would tie distances that differ in the last bit.
    """
    squared = np.empty(len(pairs), dtype=np.float32)
    for start in range(0, len(pairs), CHUNK):
        part = slice(start, start + CHUNK)
        difference = descriptors[pairs.first[part]] - descriptors[pairs.second[part]]
        squared[part] = np.einsum("ij,ij->i", difference, difference)
    return squared


def rank1_over_points(descriptors: NDArray[np.float32], patch_set: PatchSet) -> float:
    """First patch of each point against the last patch of every point; points with one patch are left out."""
    classes = patch_set.classes()
    first, last = classes.members[classes.starts[:-1]], classes.members[classes.starts[1:] - 1]
    return rank1(descriptors[first], descriptors[last], np.arange(classes.count))


def spread_over_points(descriptors: NDArray[np.float32], patch_set: PatchSet) -> tuple[float, float]:
    """GOR's M1 and M2 over random pairs of patches of different points, the same pairs for every describer.

    Raw descriptors are scaled to unit length. 100,000 pairs tell d * M2 of a spread-out descriptor to about 0.005.
    """
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, len(patch_set), (2, SPREAD_PAIRS))
    different = patch_set.point_id[first] != patch_set.point_id[second]
    return spread_moments(descriptors[first[different]], descriptors[second[different]])


def hash_patches(patch_set: PatchSet, lists: Sequence[Pairs]) -> str:
    """SHA-256 of pixels, point ids and lists, whatever files they lie in."""
    digest = hashlib.sha256()
    for start in range(0, len(patch_set), CHUNK):
        digest.update(patch_set.patches[start : start + CHUNK].tobytes())
    digest.update(patch_set.point_id.tobytes())
    for pairs in lists:
        digest.update(np.stack([pairs.first, pairs.second, pairs.is_match]).tobytes())
    return digest.hexdigest()

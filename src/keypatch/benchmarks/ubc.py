"""PhotoTour patch verification (Brown, Winder, Hua): are the two patches of a pair the same point?"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.caching import describe_cached
from keypatch.benchmarks.hardest_pairs import hardest_pairs
from keypatch.benchmarks.pair_scores import pair_curves, pair_replicates, pair_scores, rank_pairs, similarity_curves
from keypatch.benchmarks.result import Replicates, Result, provenance_of
from keypatch.describers.protocol import CHUNK, Describer, Progress
from keypatch.errors import DataError, KeypatchError
from keypatch.metrics import FPR_RULES, FprRule, bootstrap_mean, rank1_hits, reference_image_precisions, spread_moments
from keypatch.patches.opening import open_patches
from keypatch.patches.pair_lists import find_pairs
from keypatch.patches.patch_set import Pairs, PatchSet

SPREAD_PAIRS = 100_000


@dataclass(frozen=True)
class Ubc:
    """How PhotoTour patches are scored, and what the result holds beside scores and curves."""

    rule: FprRule = "rank"  # whose definition of FPR95
    intervals: bool = True  # how sure the scores are, by drawing pairs and points again
    pictures: bool = True  # the hardest pairs of every list, as pictures

    def __post_init__(self) -> None:
        if self.rule not in FPR_RULES:
            raise KeypatchError(f'There is no FPR95 rule "{self.rule}"; choose one of {", ".join(FPR_RULES)}.')


def evaluate_ubc(
    describer: Describer,
    data: str | Path | PatchSet,
    settings: Ubc = Ubc(),  # noqa: B008  a frozen value
    progress: Progress | None = None,
) -> Result:
    """Every pair list of a patch set, and rank-1 over its points.

    Scores for each list: "fpr95.<list>" by the given rule, "ap.<list>" (average precision), "auc.<list>" (area under
    the ROC curve), with the curves "pr.<list>" and "roc.<list>", and "similarity.matching.<list>" and
    "similarity.nonmatching.<list>", the densities of the cosines (GOR, figure 5); "rank1" is the share of points whose
    first patch is nearer to the point's last patch than to the last patch of every other point; "revisited_map" is the
    mean precision inside the reference images (`reference_image_precisions`), where the set names them; "spread.m1" and
    "spread.dm2" are GOR's M1 and d times M2 over random patches of different points (`spread_over_points`).
    Replicates draw the pairs of a list, for rank-1 the points that are looked for, not those looked among, and images.
    """
    patch_set = data if isinstance(data, PatchSet) else open_patches(data)
    lists = _find_lists(patch_set)
    data_hash = hash_patches(patch_set, lists)
    descriptors = describe_cached(describer, patch_set, data_hash, progress)
    ranked = rank_pairs(descriptors, lists)
    means = _means(descriptors, patch_set)
    m1, m2 = spread_over_points(descriptors, patch_set)
    scores = pair_scores(ranked, settings.rule)
    scores |= {name: float(values.mean()) for name, (_, values) in means.items()}
    scores |= {"spread.m1": m1, "spread.dm2": describer.dim * m2}
    replicates: dict[str, Replicates] = {}
    if settings.intervals:
        replicates = pair_replicates(ranked, settings.rule)
        for name, (units, values) in means.items():
            replicates[name] = Replicates(bootstrap_mean(values), units, len(values))
    pictures: dict[str, bytes] = {}
    if settings.pictures:
        for pairs in lists:
            pictures |= hardest_pairs(patch_set, pairs, ranked[pairs.name])
    return Result(
        benchmark="ubc",
        descriptor=describer.name,
        settings={
            "data": patch_set.name,
            "rule": settings.rule,
            "pairs": {pairs.name: len(pairs) for pairs in lists},
            **card_of(patch_set),
        },
        scores=scores,
        curves=pair_curves(ranked) | similarity_curves(descriptors, lists),
        provenance=provenance_of(describer, data_hash),
        replicates=replicates,
        pictures=pictures,
    )


def _means(
    descriptors: NDArray[np.float32], patch_set: PatchSet
) -> dict[str, tuple[str, NDArray[np.bool_] | NDArray[np.float64]]]:
    """The scores that are means over units of their own: what the units are, and the value of each."""
    means: dict[str, tuple[str, NDArray[np.bool_] | NDArray[np.float64]]] = {
        "rank1": ("points", rank1_over_points(descriptors, patch_set))
    }
    if patch_set.image_id is not None:
        precisions = reference_image_precisions(descriptors, patch_set.point_id, patch_set.image_id)
        if precisions.size:  # none where an image is the one a patch was cut from: it shows a point once
            means["revisited_map"] = ("images", precisions)
    return means


def rank1_over_points(descriptors: NDArray[np.float32], patch_set: PatchSet) -> NDArray[np.bool_]:
    """Whose first patch is nearest to its own last patch among all last ones; points with one patch are left out."""
    classes = patch_set.classes()
    first, last = classes.members[classes.starts[:-1]], classes.members[classes.starts[1:] - 1]
    return rank1_hits(descriptors[first], descriptors[last], np.arange(classes.count))


def spread_over_points(descriptors: NDArray[np.float32], patch_set: PatchSet) -> tuple[float, float]:
    """GOR's M1 and M2 over random pairs of patches of different points, the same pairs for every describer.

    Raw descriptors are scaled to unit length. 100,000 pairs tell d * M2 of a spread-out descriptor to about 0.005.
    """
    rng = np.random.default_rng(0)
    first, second = rng.integers(0, len(patch_set), (2, SPREAD_PAIRS))
    different = patch_set.point_id[first] != patch_set.point_id[second]
    return spread_moments(descriptors[first[different]], descriptors[second[different]])


def hash_patches(patch_set: PatchSet, lists: Sequence[Pairs] = ()) -> str:
    """SHA-256 of pixels, point ids, image ids if there are any, and lists, whatever files they lie in."""
    digest = hashlib.sha256()
    for start in range(0, len(patch_set), CHUNK):
        digest.update(patch_set.patches[start : start + CHUNK].tobytes())
    digest.update(patch_set.point_id.tobytes())
    if patch_set.image_id is not None:
        digest.update(patch_set.image_id.tobytes())
    for pairs in lists:
        digest.update(np.stack([pairs.first, pairs.second, pairs.is_match]).tobytes())
    return digest.hexdigest()


def card_of(patch_set: PatchSet) -> dict[str, Any]:
    """For the settings of a result: the card of the set, where it has one."""
    return {"card": dict(patch_set.card)} if patch_set.card else {}


def _find_lists(patch_set: PatchSet) -> tuple[Pairs, ...]:
    lists = find_pairs(patch_set.folder, len(patch_set), patch_set.point_id) if patch_set.folder else ()
    if not lists:
        raise DataError(
            f"{patch_set.name} has no list of pairs (such as m50_100000_100000_0.txt) to score. "
            "For strips of HPatches choose the benchmark hpatches."
        )
    return lists

"""PhotoTour patch verification (Brown, Winder, Hua): are the two patches of a pair the same point?"""

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from keypatch.benchmarks.caching import describe_cached
from keypatch.benchmarks.contamination import seen_patches
from keypatch.benchmarks.result import Replicates, Result, provenance_of
from keypatch.describers.protocol import CHUNK, Describer
from keypatch.errors import DataError
from keypatch.metrics import (
    Curve,
    FprRule,
    RankedPairs,
    bootstrap,
    bootstrap_mean,
    cosines,
    rank1_hits,
    reference_image_precisions,
    spread_moments,
)
from keypatch.metrics.ranking import squared_lengths
from keypatch.patches import Pairs, PatchSet, open_patches
from keypatch.patches.phototour import find_pair_lists
from keypatch.patches.sources import SOURCES
from keypatch.progress import Progress
from keypatch.settings import CheckedFields, option

LIST_SCORES = ("fpr95", "ap", "auc")
BINS = 100  # of the cosines, from -1 to 1
Lists = Mapping[str, RankedPairs]  # by the name of the list
PAIRS, COLUMNS = 12, 3  # of a picture of the hardest pairs
_SIDE, _GAP, _CAPTION = 48, 8, 14  # pixels
_INK = (128, 255)  # readable on white and on black, since the paper is transparent
SPREAD_PAIRS = 100_000


@dataclass(frozen=True)
class Ubc(CheckedFields):
    """How PhotoTour patches are scored, and what the result holds beside scores and curves."""

    rule: FprRule = option("rank", "Definition of FPR95.")
    intervals: bool = option(True, "Compute confidence intervals by resampling pairs and points.")
    pictures: bool = option(True, "Include pictures of the hardest pairs of every list.")


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
    lists = find_pair_lists(patch_set)
    if not lists:
        raise DataError(
            f"{patch_set.name} has no pair list (such as m50_100000_100000_0.txt) to score. "
            "For HPatches strips, choose the benchmark hpatches."
        )
    data_hash = hash_patches(patch_set, lists)
    descriptors = describe_cached(describer, patch_set, data_hash, progress)
    ranked = {pairs.name: RankedPairs.of(pair_distances(descriptors, pairs), pairs.is_match) for pairs in lists}
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
        contamination=seen_patches(describer, patch_set),
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
        digest.update(np.ascontiguousarray(patch_set.patches[start : start + CHUNK]).data)
    digest.update(patch_set.point_id.tobytes())
    if patch_set.image_id is not None:
        digest.update(patch_set.image_id.tobytes())
    for pairs in lists:
        digest.update(np.stack([pairs.first, pairs.second, pairs.is_match]).tobytes())
    return digest.hexdigest()


def card_of(patch_set: PatchSet) -> dict[str, Any]:
    """For the settings of a result: the card of the set, where it has one, with the number of its sources alone."""
    card = dict(patch_set.card)
    if SOURCES in card:
        card[SOURCES] = len(card[SOURCES])
    return {"card": card} if card else {}


def pair_distances(descriptors: NDArray[np.float32], pairs: Pairs) -> NDArray[np.float32]:
    """Squared Euclidean distance of each pair, from differences: 2 - 2s would lose near-identical vectors in float32.

    Squared, since ranks are all that is asked for and the root would tie distances that differ in the last bit.
    """
    squared = np.empty(len(pairs), dtype=np.float32)
    for start in range(0, len(pairs), CHUNK):
        part = slice(start, start + CHUNK)
        squared[part] = squared_lengths(descriptors[pairs.first[part]] - descriptors[pairs.second[part]])
    return squared


def pair_scores(lists: Lists, rule: FprRule) -> dict[str, float]:
    """ "fpr95.<list>", "ap.<list>" (average precision) and "auc.<list>" (area under the ROC curve)."""
    return {
        f"{kind}.{name}": score
        for name, ranked in lists.items()
        for kind, score in zip(LIST_SCORES, _scores(ranked, rule), strict=True)
    }


def pair_replicates(lists: Lists, rule: FprRule) -> dict[str, Replicates]:
    """The same scores on pairs drawn again from each list."""
    replicates = {}
    for name, ranked in lists.items():
        drawn = bootstrap(partial(_scores, ranked, rule), len(ranked))
        for kind, values in zip(LIST_SCORES, drawn.T, strict=True):
            replicates[f"{kind}.{name}"] = Replicates(values, "pairs", len(ranked))
    return replicates


def pair_curves(lists: Lists) -> dict[str, Curve]:
    """ "pr.<list>" (recall, precision) and "roc.<list>" (false-positive rate, recall)."""
    curves = {}
    for name, ranked in lists.items():
        accepted = ranked.accepted()
        curves[f"pr.{name}"] = accepted.precision_recall_curve().thinned()
        curves[f"roc.{name}"] = accepted.roc_curve().thinned()
    return curves


def similarity_curves(descriptors: NDArray[np.float32], lists: Sequence[Pairs]) -> dict[str, Curve]:
    """ "similarity.matching.<list>" and "similarity.nonmatching.<list>": the density of the cosines (GOR, figure 5)."""
    edges = np.linspace(-1, 1, BINS + 1)
    curves = {}
    for pairs in lists:
        found = np.empty(len(pairs))
        for start in range(0, len(pairs), CHUNK):
            part = slice(start, start + CHUNK)
            found[part] = cosines(descriptors[pairs.first[part]], descriptors[pairs.second[part]])
        for kind, chosen in {"matching": pairs.is_match, "nonmatching": ~pairs.is_match}.items():
            if chosen.any():
                density, _ = np.histogram(found[chosen].clip(-1, 1), edges, density=True)
                curves[f"similarity.{kind}.{pairs.name}"] = Curve((edges[1:] + edges[:-1]) / 2, density)
    return curves


def _scores(ranked: RankedPairs, rule: FprRule, counts: NDArray[np.int64] | None = None) -> tuple[float, float, float]:
    accepted = ranked.accepted(counts)
    return accepted.fpr95(rule), accepted.average_precision(), accepted.roc_auc()


def hardest_pairs(patch_set: PatchSet, pairs: Pairs, ranked: RankedPairs) -> dict[str, bytes]:
    """PNG files by title: the matching pairs with the largest distances, the non-matching ones with the smallest."""
    match = ranked.match == 1
    hardest = {"matching": ranked.order[match][::-1][:PAIRS], "non-matching": ranked.order[~match][:PAIRS]}
    return {
        f"hardest {kind} pairs, {pairs.name}": draw_patch_pairs(
            patch_set.take(np.stack([pairs.first[chosen], pairs.second[chosen]], axis=1))
        )
        for kind, chosen in hardest.items()
        if len(chosen)
    }


def draw_patch_pairs(patches: NDArray[np.uint8]) -> bytes:
    """Pairs of patches (n, 2, side, side) side by side in rows, each with its number from 1 below, as a PNG file."""
    width, height = 2 * _SIDE + _GAP, _SIDE + _CAPTION
    columns, rows = min(COLUMNS, len(patches)), -(-len(patches) // COLUMNS)
    sheet = Image.new("LA", (columns * width - _GAP, rows * height), (0, 0))
    draw = ImageDraw.Draw(sheet)
    for number, pair in enumerate(patches):
        row, column = divmod(number, COLUMNS)
        left, top = column * width, row * height
        for k, patch in enumerate(pair):
            sheet.paste(Image.fromarray(patch).resize((_SIDE, _SIDE)).convert("LA"), (left + k * _SIDE, top))
        draw.text((left + _SIDE, top + _SIDE), str(number + 1), _INK, anchor="ma")
    file = io.BytesIO()
    sheet.save(file, "PNG", optimize=True)
    return file.getvalue()

"""What lists of pairs say about descriptors: scores, curves, and how sure the scores are."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.result import Replicates
from keypatch.describers.protocol import CHUNK
from keypatch.metrics import Accepted, Curve, FprRule, RankedPairs, bootstrap, cosines
from keypatch.metrics.ranking import squared_lengths
from keypatch.patches.patch_set import Pairs

SCORES = ("fpr95", "ap", "auc")
BINS = 100  # of the cosines, from -1 to 1

Lists = Mapping[str, RankedPairs]  # by the name of the list


def rank_pairs(descriptors: NDArray[np.float32], lists: Sequence[Pairs]) -> dict[str, RankedPairs]:
    """Every list sorted by distance."""
    return {pairs.name: RankedPairs.of(squared_distances(descriptors, pairs), pairs.is_match) for pairs in lists}


def squared_distances(descriptors: NDArray[np.float32], pairs: Pairs) -> NDArray[np.float32]:
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
        for kind, score in zip(SCORES, _scores(ranked.accepted(), rule), strict=True)
    }


def pair_replicates(lists: Lists, rule: FprRule) -> dict[str, Replicates]:
    """The same scores on pairs drawn again from each list."""
    replicates = {}
    for name, ranked in lists.items():
        for kind, values in zip(SCORES, _drawn_scores(ranked, rule).T, strict=True):
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


def _drawn_scores(ranked: RankedPairs, rule: FprRule) -> NDArray[np.float64]:
    return bootstrap(lambda counts: _scores(ranked.accepted(counts), rule), len(ranked))


def _scores(accepted: Accepted, rule: FprRule) -> tuple[float, float, float]:
    return accepted.fpr95(rule), accepted.average_precision(), accepted.roc_auc()

"""Precision and ROC area of a ranked list whose tie rule is chosen, as the HPatches benchmark scores its lists.

A list enters as the number of non-matches ranked before each of its matches, from the nearest match to the farthest.
"""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError

ApRule = Literal["trapezoid", "classic"]
Ties = Literal["pessimistic", "public"]

_SMALL = 1e-10  # the public tool's: the precision of nothing retrieved is 1


def false_before(distances: ArrayLike, is_match: ArrayLike, ties: Ties = "pessimistic") -> NDArray[np.int64]:
    """(matches,): how many non-matches come before each match when the list (n,) is sorted by distance.

    Among equal distances non-matches come first ("pessimistic"), or the order of the list stays ("public").
    """
    distance, match = np.asarray(distances), np.asarray(is_match, bool)
    if distance.ndim != 1 or distance.shape != match.shape or not np.isfinite(distance).all():
        raise KeypatchError(
            f"A ranked list needs finite distances and as many labels, found shapes {distance.shape} and {match.shape}."
        )
    if ties == "pessimistic":
        return false_before_sorted(np.sort(distance[match]), np.sort(distance[~match]))
    ranked = match[np.argsort(distance, kind="stable")]
    return np.asarray(np.cumsum(~ranked)[ranked])


def false_before_sorted(matches: NDArray[np.floating], non_matches: NDArray[np.floating]) -> NDArray[np.int64]:
    """(matches,): the pessimistic `false_before` of distances that are sorted already."""
    return np.asarray(np.searchsorted(non_matches, matches, side="right"))


def listed_precision(before: ArrayLike, positives: int, rule: ApRule = "trapezoid") -> NDArray[np.float64]:
    """Average precision of lists (..., retrieved matches) as `false_before` gives them; in [0, 1], nan for no positive.

    positives: matches there are; those that were never retrieved add nothing.

    - "trapezoid": area under precision over recall in straight lines, as HPatches' Python tool and VLFeat's "auc" have
      it: a match counts with the mean of the precision at its rank and at the rank before. A false first costs double.
    - "classic": the mean of the precision at the matches, as HPatches' MATLAB tool and VLFeat's "ap" have it.
    """
    false = np.asarray(before, np.float64)
    if positives < false.shape[-1]:
        raise KeypatchError(f"{false.shape[-1]} matches were retrieved, but there are only {positives}.")
    if not positives:
        return np.full(false.shape[:-1], np.nan)
    true = np.arange(1, false.shape[-1] + 1, dtype=np.float64)
    at_match = true / (true + false)
    if rule == "classic":
        return np.asarray(at_match.sum(axis=-1) / positives)
    rank_before = np.maximum(true - 1, _SMALL) / np.maximum(true - 1 + false, _SMALL)
    return np.asarray((at_match + rank_before).sum(axis=-1) / (2 * positives))


def listed_auc(before: ArrayLike, non_matches: int) -> float:
    """Area under the ROC curve of one list: the mean share of non-matches that come after a match; nan without both."""
    false = np.asarray(before, np.float64)
    return float(1 - false.mean() / non_matches) if false.size and non_matches else float("nan")

"""Scores of a list of pairs, each a distance and whether the two patches show the same point."""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError

FprRule = Literal["rank", "optimistic", "hynet", "discovery", "interpolated"]
FPR_RULES: tuple[FprRule, ...] = get_args(FprRule)


@dataclass(frozen=True)
class Curve:
    """Points (x, y) of a curve in order of growing distance threshold, equal distances taken together."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def thinned(self, limit: int = 500) -> "Curve":
        """At most `limit` of the points, evenly spread along the curve, both ends kept."""
        if len(self.x) <= limit:
            return self
        length = np.concatenate([[0.0], np.cumsum(np.abs(np.diff(self.x)) + np.abs(np.diff(self.y)))])
        kept = np.searchsorted(length, np.linspace(0.0, length[-1], limit))
        kept[-1] = len(self.x) - 1
        kept = np.unique(kept)
        return Curve(self.x[kept], self.y[kept])


def fpr95(distances: ArrayLike, is_match: ArrayLike, rule: FprRule = "rank") -> float:
    """False-positive rate at 95% recall on a list of pairs, in [0, 1]; nan without both kinds of pairs.

    With k = ceil(0.95 * matches), the k-th nearest match is the threshold and

    - "rank" counts the non-matches up to it, those at exactly its distance included. Without ties this is HardNet's
      function and the first point of the ROC curve with recall 0.95; with ties it is never flattering.
    - "optimistic" leaves out the non-matches at exactly its distance: the lower bound where distances are tied.
    - "hynet" takes the next match, number k + 1, as the threshold; nan for fewer than 20 matches, which have none.
    - "discovery" divides by the accepted pairs (a false-discovery rate), as GOR's and TensorFlow TFeat's code do.
    - "interpolated" reads the ROC curve at recall 0.95 by linear interpolation (`numpy.interp`).
    """
    if rule not in FPR_RULES:
        raise KeypatchError(f'There is no FPR95 rule "{rule}"; choose one of {", ".join(FPR_RULES)}.')
    distance, match = _checked(distances, is_match)
    positives, negatives = distance[match], distance[~match]
    if not positives.size or not negatives.size:
        return float("nan")
    if rule == "interpolated":
        curve = roc_curve(distance, match)
        return float(np.interp(0.95, curve.y, curve.x))
    needed = -(-19 * positives.size // 20)  # ceil(0.95 * matches) in whole numbers
    order = needed if rule == "hynet" else needed - 1
    if order >= positives.size:
        return float("nan")
    threshold = np.partition(positives, order)[order]
    accepted = negatives < threshold if rule == "optimistic" else negatives <= threshold
    false_positives = int(np.count_nonzero(accepted))
    return false_positives / (false_positives + needed if rule == "discovery" else negatives.size)


def average_precision(distances: ArrayLike, is_match: ArrayLike) -> float:
    """Sum of precision times gain in recall over the thresholds, in (0, 1]; nan without both kinds of pairs.

    Equal distances are one threshold (scikit-learn's definition), so the order of the list never matters.
    """
    curve = precision_recall_curve(distances, is_match)
    return float(np.sum(np.diff(curve.x) * curve.y[1:])) if curve.x.size else float("nan")


def roc_auc(distances: ArrayLike, is_match: ArrayLike) -> float:
    """Chance that a match is nearer than a non-match, equal distances counting half; nan without both kinds."""
    curve = roc_curve(distances, is_match)
    return float(np.sum(np.diff(curve.x) * (curve.y[1:] + curve.y[:-1]) / 2)) if curve.x.size else float("nan")


def precision_recall_curve(distances: ArrayLike, is_match: ArrayLike) -> Curve:
    """x = recall, y = precision, from (0, 1) on; empty without both kinds of pairs."""
    true, false = _accepted(distances, is_match)
    if not true.size:
        return Curve(true, false)
    precision = np.concatenate([[1.0], true[1:] / (true[1:] + false[1:])])
    return Curve(true / true[-1], precision)


def roc_curve(distances: ArrayLike, is_match: ArrayLike) -> Curve:
    """x = false-positive rate, y = recall, from (0, 0) to (1, 1); empty without both kinds of pairs."""
    true, false = _accepted(distances, is_match)
    if not true.size:
        return Curve(false, true)
    return Curve(false / false[-1], true / true[-1])


def _accepted(distances: ArrayLike, is_match: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Accepted matches and accepted non-matches at every distinct distance, each starting at 0."""
    distance, match = _checked(distances, is_match)
    if match.all() or not match.any():
        return np.empty(0), np.empty(0)
    order = np.argsort(distance, kind="stable")
    distance, match = distance[order], match[order]
    last_of_tie = np.append(np.flatnonzero(np.diff(distance)), len(distance) - 1)
    true = np.cumsum(match)[last_of_tie]
    false = last_of_tie + 1 - true
    return np.concatenate([[0.0], true]), np.concatenate([[0.0], false])


def _checked(distances: ArrayLike, is_match: ArrayLike) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    distance, match = np.asarray(distances), np.asarray(is_match).astype(bool)
    if distance.ndim != 1 or distance.shape != match.shape:
        raise KeypatchError(
            f"Distances and labels must be two lists of one length, found shapes {distance.shape} and {match.shape}."
        )
    finite = np.isfinite(distance)
    if not finite.all():
        raise KeypatchError(
            f"{np.count_nonzero(~finite)} of {len(distance)} distances are not finite, the first at position "
            f"{np.flatnonzero(~finite)[0]}: the descriptors hold nan or inf."
        )
    return distance, match

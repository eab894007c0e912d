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


@dataclass(frozen=True, eq=False)
class Accepted:
    """Accepted matches and non-matches at every distinct distance, from near to far, each starting at 0."""

    true: NDArray[np.int64]
    false: NDArray[np.int64]

    @property
    def both_kinds(self) -> bool:
        return bool(self.true[-1] and self.false[-1])

    def fpr95(self, rule: FprRule = "rank") -> float:
        if not self.both_kinds:
            return float("nan")
        if rule == "interpolated":
            curve = self.roc_curve()
            return float(np.interp(0.95, curve.y, curve.x))
        matches, non_matches = int(self.true[-1]), int(self.false[-1])
        needed = -(-19 * matches // 20)  # ceil(0.95 * matches) in whole numbers
        wanted = needed + 1 if rule == "hynet" else needed
        if wanted > matches:
            return float("nan")
        threshold = int(np.searchsorted(self.true, wanted))
        false_positives = int(self.false[threshold - 1 if rule == "optimistic" else threshold])
        return false_positives / (false_positives + needed if rule == "discovery" else non_matches)

    def average_precision(self) -> float:
        if not self.both_kinds:
            return float("nan")
        true = self.true[1:]
        pairs = np.maximum(true + self.false[1:], 1)  # none before the first drawn pair, where no recall is gained
        return float(np.sum(np.diff(self.true) * (true / pairs)) / true[-1])

    def roc_auc(self) -> float:
        if not self.both_kinds:
            return float("nan")
        twice = np.dot(np.diff(self.false), self.true[1:] + self.true[:-1])
        return float(twice) / (2 * float(self.true[-1]) * float(self.false[-1]))

    def precision_recall_curve(self) -> Curve:
        if not self.both_kinds:
            return Curve(np.empty(0), np.empty(0))
        precision = self.true[1:] / (self.true[1:] + self.false[1:])
        return Curve(self.true / self.true[-1], np.concatenate([[1.0], precision]))

    def roc_curve(self) -> Curve:
        if not self.both_kinds:
            return Curve(np.empty(0), np.empty(0))
        return Curve(self.false / self.false[-1], self.true / self.true[-1])


@dataclass(frozen=True, eq=False)
class RankedPairs:
    """A list of pairs sorted by distance, once for the list itself and for all lists drawn from it."""

    order: NDArray[np.int64]  # (n,) the pairs from near to far
    match: NDArray[np.int64]  # (n,) 1 for a match, in that order
    last_of_tie: NDArray[np.int64]  # the last place in the order of every distinct distance

    @classmethod
    def of(cls, distances: ArrayLike, is_match: ArrayLike) -> "RankedPairs":
        distance, match = _checked(distances, is_match)
        order = np.argsort(distance, kind="stable")
        ends = np.flatnonzero(np.diff(distance[order]))
        return cls(order, match[order].astype(np.int64), np.append(ends, len(order) - 1)[: len(order)])

    def __len__(self) -> int:
        return len(self.order)

    def accepted(self, counts: NDArray[np.int64] | None = None) -> Accepted:
        """Of the list, or of the list in which the k-th pair stands `counts[k]` times."""
        times = np.ones_like(self.order) if counts is None else counts[self.order]
        true, pairs = np.zeros((2, len(self.last_of_tie) + 1), np.int64)
        true[1:] = np.cumsum(times * self.match)[self.last_of_tie]
        pairs[1:] = np.cumsum(times)[self.last_of_tie]
        return Accepted(true, pairs - true)


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
    return RankedPairs.of(distances, is_match).accepted().fpr95(rule)


def average_precision(distances: ArrayLike, is_match: ArrayLike) -> float:
    """Sum of precision times gain in recall over the thresholds, in (0, 1]; nan without both kinds of pairs.

    Equal distances are one threshold (scikit-learn's definition), so the order of the list never matters.
    """
    return RankedPairs.of(distances, is_match).accepted().average_precision()


def roc_auc(distances: ArrayLike, is_match: ArrayLike) -> float:
    """Chance that a match is nearer than a non-match, equal distances counting half; nan without both kinds."""
    return RankedPairs.of(distances, is_match).accepted().roc_auc()


def precision_recall_curve(distances: ArrayLike, is_match: ArrayLike) -> Curve:
    """x = recall, y = precision, from (0, 1) on; empty without both kinds of pairs."""
    return RankedPairs.of(distances, is_match).accepted().precision_recall_curve()


def roc_curve(distances: ArrayLike, is_match: ArrayLike) -> Curve:
    """x = false-positive rate, y = recall, from (0, 0) to (1, 1); empty without both kinds of pairs."""
    return RankedPairs.of(distances, is_match).accepted().roc_curve()


def _checked(distances: ArrayLike, is_match: ArrayLike) -> tuple[NDArray[np.floating], NDArray[np.bool_]]:
    distance, match = np.asarray(distances), np.asarray(is_match).astype(bool)
    if distance.ndim != 1 or distance.shape != match.shape:
        raise KeypatchError(
            f"Distances and labels must be lists of equal length, found shapes {distance.shape} and {match.shape}."
        )
    finite = np.isfinite(distance)
    if not finite.all():
        raise KeypatchError(
            f"{np.count_nonzero(~finite)} of {len(distance)} distances are not finite, the first at position "
            f"{np.flatnonzero(~finite)[0]}: the descriptors hold nan or inf."
        )
    return distance, match


def spread_moments(first: NDArray[np.float32], second: NDArray[np.float32]) -> tuple[float, float]:
    """M1 = mean s and M2 = mean s^2 over the cosines s of non-matching pairs of rows (n, d); nan without pairs.

    GOR's two moments: independent uniform vectors of the sphere have M1 = 0 and M2 = 1/d. Rows of another length are
    scaled to unit length; a row of zeros has no direction and counts as s = 0.
    """
    found = cosines(first, second)
    if not len(found):
        return float("nan"), float("nan")
    return float(found.mean()), float(np.square(found).mean())


def cosines(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
    """(n,): the cosine of each pair of rows (n, d), whatever their lengths; 0 for a row of zeros."""
    if first.ndim != 2 or first.shape != second.shape:
        raise KeypatchError(f"Both sides of the pairs must be (n, d), found {first.shape} and {second.shape}.")
    if not (np.isfinite(first).all() and np.isfinite(second).all()):
        raise KeypatchError("The descriptors hold nan or inf.")
    products = _products(first, second)
    lengths = np.sqrt(_products(first, first) * _products(second, second))
    return np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0)


def _products(first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float64]:
    return np.asarray(np.einsum("ij,ij->i", first, second, dtype=np.float64))

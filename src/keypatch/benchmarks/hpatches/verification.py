"""HPatches verification: do the two patches of a pair show the same point?"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.hpatches.descriptors import LEVELS, StripDescriptors
from keypatch.benchmarks.hpatches.distances import Distance, listed_distances
from keypatch.benchmarks.hpatches.lists import Table, Tasks
from keypatch.benchmarks.result import Replicates
from keypatch.metrics import Curve, draw_counts
from keypatch.metrics.listed import ApRule, false_before_sorted, listed_auc, listed_precision

NODES = 500  # thresholds at which drawn lists are read
Counts = NDArray[np.float64]
NEGATIVES = ("inter", "intra")
IMBALANCE = 0.2  # of the positives, against all negatives


@dataclass(frozen=True)
class StripScores:
    """Scores of one task or of all, the curves of the same lists, and replicates that draw sequences."""

    scores: dict[str, float]
    curves: dict[str, Curve]
    replicates: dict[str, Replicates]


def verify_pairs(descriptors: StripDescriptors, tasks: Tasks, distance: Distance, ap: ApRule) -> StripScores:
    """All positives against as many negatives (ROC area), a fifth of them against all negatives (average precision).

    Scores "ap.e.inter", "auc.e.inter" and so on, and their means. Among equal distances the negatives come first,
    whatever the tie rule: the public tool lists them first too. Replicates are of "ap" and "auc"; a sequence comes with
    the pairs whose first patch is in it.
    """
    scores: dict[str, float] = {}
    curves: dict[str, Curve] = {}
    drawn: dict[str, list[NDArray[np.float64]]] = {"ap": [], "auc": []}
    count = len(descriptors.names)
    draws = np.stack(list(draw_counts(count)))  # (1000, sequences)
    some = int(IMBALANCE * len(tasks.positives))
    for number, level in enumerate(LEVELS):
        positives = Ranked.of(descriptors, tasks.positives, number, distance)
        few = positives.among(some)
        for kind in NEGATIVES:
            negatives, name = Ranked.of(descriptors, getattr(tasks, kind), number, distance), f"{level}.{kind}"
            before = false_before_sorted(positives.distances, negatives.distances)
            scores[f"auc.{name}"] = listed_auc(before, len(negatives))
            curves[f"roc.{name}"] = _roc_curve(before, len(negatives))
            before = false_before_sorted(few.distances, negatives.distances)
            scores[f"ap.{name}"] = float(listed_precision(before, len(few), ap)) if len(negatives) else float("nan")
            curves[f"pr.{name}"] = _pr_curve(before)
            if len(few) and len(negatives):
                drawn["auc"].append(_drawn(Nodes.of(positives, negatives, count).areas, draws, scores[f"auc.{name}"]))
                drawn["ap"].append(_drawn(Nodes.of(few, negatives, count).precisions, draws, scores[f"ap.{name}"]))
    replicates = {
        name: Replicates(np.mean(values, axis=0), "sequences", count) for name, values in drawn.items() if values
    }
    return StripScores(scores | _means(scores), curves, replicates)


@dataclass(frozen=True, eq=False)
class Ranked:
    """Pairs from near to far."""

    distances: NDArray[np.float32]
    sequence: NDArray[np.int32]  # of the first patch
    place: NDArray[np.int64]  # in the list

    @classmethod
    def of(cls, descriptors: StripDescriptors, table: Table, level: int, distance: Distance) -> "Ranked":
        first = descriptors.places(table[:, 0], level, table[:, 1], table[:, 2])
        second = descriptors.places(table[:, 3], level, table[:, 4], table[:, 5])
        distances = listed_distances(descriptors.rows, first, second, distance)
        order = np.argsort(distances)
        return cls(distances[order], table[order, 0], order)

    def __len__(self) -> int:
        return len(self.distances)

    def among(self, count: int) -> "Ranked":
        """Those among the first of the list."""
        kept = self.place < count
        return Ranked(self.distances[kept], self.sequence[kept], self.place[kept])


def _drawn(
    statistic: Callable[[NDArray[np.int64]], NDArray[np.float64]], draws: NDArray[np.int64], score: float
) -> NDArray[np.float64]:
    """A statistic at some thresholds for each draw, moved so that the draw of every sequence once gives the score."""
    return statistic(draws) + (score - statistic(np.ones_like(draws[:1])))


def _means(scores: dict[str, float]) -> dict[str, float]:
    """ "ap.inter", "ap.intra" over the levels, "ap" over all six; so for "auc"."""
    means = {}
    for name in ("ap", "auc"):
        for kind in NEGATIVES:
            means[f"{name}.{kind}"] = float(np.mean([scores[f"{name}.{level}.{kind}"] for level in LEVELS]))
        means[name] = float(np.mean([means[f"{name}.{kind}"] for kind in NEGATIVES]))
    return means


def _pr_curve(before: NDArray[np.int64]) -> Curve:
    true = np.arange(1, len(before) + 1)
    return Curve(np.append(0.0, true / len(true)), np.append(1.0, true / (true + before))).thinned()


def _roc_curve(before: NDArray[np.int64], negatives: int) -> Curve:
    true = np.arange(1, len(before) + 1) / len(before)
    return Curve(np.append(0.0, before / max(negatives, 1)), np.append(0.0, true)).thinned()


@dataclass(frozen=True, eq=False)
class Nodes:
    """Accepted positives and negatives of each sequence at thresholds that are evenly spread over the positives.

    A draw of sequences, how often each counts, is then a product of matrices, and needs no sorting of a million pairs.
    """

    true: Counts  # (nodes + 1, sequences), from no pair on
    false: Counts
    negatives: Counts  # (sequences,)

    @classmethod
    def of(cls, positives: Ranked, negatives: Ranked, sequences: int) -> "Nodes":
        """One positive at least."""
        accepted = np.unique(np.linspace(1, len(positives), NODES).astype(int))  # positives at each node
        node = np.searchsorted(accepted, np.arange(len(positives)), side="right")
        false_node = np.searchsorted(positives.distances[accepted - 1], negatives.distances)  # the first to accept it

        def count(nodes: NDArray[np.int64], sequence: NDArray[np.int32]) -> Counts:
            shape = len(accepted) + 2, sequences  # the last row is what no threshold accepts
            cells = np.bincount((nodes + 1) * sequences + sequence, minlength=shape[0] * shape[1])
            return np.cumsum(cells.reshape(shape)[:-1], axis=0).astype(np.float64)

        totals = np.bincount(negatives.sequence, minlength=sequences).astype(np.float64)
        return cls(count(node, positives.sequence), count(false_node, negatives.sequence), totals)

    def precisions(self, draws: NDArray[np.int64]) -> NDArray[np.float64]:
        """(draws,): average precision, by trapezoids between nodes, of each draw (draws, sequences)."""
        true, false = self.true @ draws.T, self.false @ draws.T  # (nodes + 1, draws)
        precision = np.divide(true, true + false, out=np.ones_like(true), where=true + false > 0)
        return _share(np.diff(true, axis=0) * (precision[1:] + precision[:-1]) / 2, true[-1])

    def areas(self, draws: NDArray[np.int64]) -> NDArray[np.float64]:
        """(draws,): the area under the ROC curve."""
        true, false = self.true @ draws.T, self.false @ draws.T
        beyond = 2 * (self.negatives @ draws.T) - false[1:] - false[:-1]
        return _share(np.diff(true, axis=0) * beyond / 2, true[-1] * (self.negatives @ draws.T))


def _share(parts: Counts, whole: Counts) -> NDArray[np.float64]:
    """The sum of the parts of the whole; nan for a draw without a positive or a negative."""
    return np.asarray(np.divide(parts.sum(axis=0), whole, out=np.full(whole.shape, np.nan), where=whole > 0))

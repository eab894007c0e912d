"""HPatches verification: do the two patches of a pair show the same point?"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.hpatches_descriptors import LEVELS, StripDescriptors
from keypatch.benchmarks.hpatches_distances import Distance, listed_distances
from keypatch.benchmarks.hpatches_nodes import Nodes
from keypatch.benchmarks.hpatches_tasks import Table, Tasks
from keypatch.metrics import Curve
from keypatch.metrics.bootstrap import draw_counts
from keypatch.metrics.listed import ApRule, false_before_sorted, listed_auc, listed_precision

NEGATIVES = ("inter", "intra")
IMBALANCE = 0.2  # of the positives, against all negatives


@dataclass(frozen=True)
class Verification:
    """Scores "ap.e.inter", "auc.e.inter" and so on, their means, and the curves of the same lists.

    Replicates of "ap" and "auc", (1000,), draw sequences: each comes with the pairs whose first patch is in it.
    """

    scores: dict[str, float]
    curves: dict[str, Curve]
    replicates: dict[str, NDArray[np.float64]]


def verify_pairs(descriptors: StripDescriptors, tasks: Tasks, distance: Distance, ap: ApRule) -> Verification:
    """All positives against as many negatives (ROC area), a fifth of them against all negatives (average precision).

    Among equal distances the negatives come first, whatever the tie rule: the public tool lists them first too.
    """
    scores: dict[str, float] = {}
    curves: dict[str, Curve] = {}
    drawn: dict[str, list[NDArray[np.float64]]] = {"ap": [], "auc": []}
    draws = np.stack(list(draw_counts(len(descriptors.names))))  # (1000, sequences)
    some = int(IMBALANCE * len(tasks.positives))
    for number, level in enumerate(LEVELS):
        positives = _Ranked.of(descriptors, tasks.positives, number, distance)
        few = positives.among(some)
        for kind in NEGATIVES:
            negatives, name = _Ranked.of(descriptors, getattr(tasks, kind), number, distance), f"{level}.{kind}"
            before = false_before_sorted(positives.distances, negatives.distances)
            scores[f"auc.{name}"] = listed_auc(before, len(negatives))
            curves[f"roc.{name}"] = _roc_curve(before, len(negatives))
            before = false_before_sorted(few.distances, negatives.distances)
            scores[f"ap.{name}"] = float(listed_precision(before, len(few), ap)) if len(negatives) else float("nan")
            curves[f"pr.{name}"] = _pr_curve(before)
            if len(few) and len(negatives):
                drawn["auc"].append(_drawn(_nodes(positives, negatives, draws).areas, draws, scores[f"auc.{name}"]))
                drawn["ap"].append(_drawn(_nodes(few, negatives, draws).precisions, draws, scores[f"ap.{name}"]))
    replicates = {name: np.asarray(np.mean(values, axis=0)) for name, values in drawn.items() if values}
    return Verification(scores | _means(scores), curves, replicates)


@dataclass(frozen=True, eq=False)
class _Ranked:
    """Pairs from near to far."""

    distances: NDArray[np.float32]
    sequence: NDArray[np.int32]  # of the first patch
    place: NDArray[np.int64]  # in the list

    @classmethod
    def of(cls, descriptors: StripDescriptors, table: Table, level: int, distance: Distance) -> "_Ranked":
        first = descriptors.places(table[:, 0], level, table[:, 1], table[:, 2])
        second = descriptors.places(table[:, 3], level, table[:, 4], table[:, 5])
        distances = listed_distances(descriptors.rows, first, second, distance)
        order = np.argsort(distances)
        return cls(distances[order], table[order, 0], order)

    def __len__(self) -> int:
        return len(self.distances)

    def among(self, count: int) -> "_Ranked":
        """Those among the first of the list."""
        kept = self.place < count
        return _Ranked(self.distances[kept], self.sequence[kept], self.place[kept])


def _nodes(positives: _Ranked, negatives: _Ranked, draws: NDArray[np.int64]) -> Nodes:
    sequences = draws.shape[1]
    return Nodes.of(positives.distances, positives.sequence, negatives.distances, negatives.sequence, sequences)


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

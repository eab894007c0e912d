"""Precision and ROC area of a list of pairs whose sequences are drawn again, read at some thresholds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

NODES = 500

Counts = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Nodes:
    """Accepted positives and negatives of each sequence at thresholds that are evenly spread over the positives.

    A draw of sequences, how often each counts, is then a product of matrices, and needs no sorting of a million pairs.
    """

    true: Counts  # (nodes + 1, sequences), from no pair on
    false: Counts
    negatives: Counts  # (sequences,)

    @classmethod
    def of(
        cls,
        positive: NDArray[np.float32],  # distances from near to far, one at least
        positive_sequence: NDArray[np.int32],
        negative: NDArray[np.float32],
        negative_sequence: NDArray[np.int32],
        sequences: int,
    ) -> "Nodes":
        accepted = np.unique(np.linspace(1, len(positive), NODES).astype(int))  # positives at each node
        node = np.searchsorted(accepted, np.arange(len(positive)), side="right")
        false_node = np.searchsorted(positive[accepted - 1], negative)  # the first whose threshold accepts it

        def count(nodes: NDArray[np.int64], sequence: NDArray[np.int32]) -> Counts:
            shape = len(accepted) + 2, sequences  # the last row is what no threshold accepts
            cells = np.bincount((nodes + 1) * sequences + sequence, minlength=shape[0] * shape[1])
            return np.cumsum(cells.reshape(shape)[:-1], axis=0).astype(np.float64)

        negatives = np.bincount(negative_sequence, minlength=sequences).astype(np.float64)
        return cls(count(node, positive_sequence), count(false_node, negative_sequence), negatives)

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

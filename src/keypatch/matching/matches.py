"""Matches: which keypoint of one photograph is which of another."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from keypatch.errors import KeypatchError
from keypatch.geometry import Keypoints
from keypatch.matching.matching import Model


@dataclass(frozen=True, eq=False)
class Evidence:
    """What matches were chosen from: pairs of keypoint numbers by which a geometry of the two views is judged."""

    neighbours: NDArray[np.int32]  # (n, 2) nearest neighbours, whatever tests they fail
    likely: NDArray[np.int32]  # (k, 2) of these the ones that pass a ratio test half as strict
    lookalikes: NDArray[np.int32]  # (l, 2) their next best elsewhere: wrong, and as alike as wrong neighbours are

    def swapped(self) -> "Evidence":
        """The same from the second photograph to the first."""
        return Evidence(self.neighbours[:, ::-1], self.likely[:, ::-1], self.lookalikes[:, ::-1])


@dataclass(frozen=True, eq=False)
class Matches:
    """Pairs of keypoint indices, each first index at most once; arrays are converted to int32 and float32.

    >>> len(kp.Matches(indices=[[0, 3], [1, 2]], scores=[0.9, 0.8]))
    2
    """

    indices: NDArray[np.int32]  # (m, 2): the keypoint in the first photograph, the one in the second
    scores: NDArray[np.float32]  # (m,): 1 - d**2 / 4 for the Euclidean distance d; (1 + cosine) / 2 of unit vectors
    verified: bool = False  # only the matches that agree with `matrix` are left
    model: Model | None = None  # fundamental matrix, essential matrix or homography
    matrix: NDArray[np.float64] | None = None  # (3, 3); None if none was found
    distinct: NDArray[np.bool_] | None = None  # (m,) which pass the ratio test; None if that is not known
    agreeing: NDArray[np.bool_] | None = None  # (m,) which agree with those around them; None without a filter
    evidence: Evidence | None = None  # None if it is not known what they were chosen from

    def __post_init__(self) -> None:
        indices, scores = np.asarray(self.indices, np.int64).reshape(-1, 2), np.asarray(self.scores, np.float32)
        if scores.shape != (len(indices),):
            raise KeypatchError(f"There are {len(indices)} matches but scores of shape {scores.shape}.")
        if indices.size and not 0 <= indices.min() <= indices.max() <= np.iinfo(np.int32).max:
            raise KeypatchError(
                f"Keypoint indices of matches must be 0 or more, found {indices.min()} to {indices.max()}."
            )
        object.__setattr__(self, "indices", indices.astype(np.int32))
        object.__setattr__(self, "scores", scores)

    def __len__(self) -> int:
        return len(self.indices)

    def take(self, index: ArrayLike) -> "Matches":
        """The matches chosen by indices or by a mask."""
        chosen = np.asarray(index)
        if chosen.size == 0:
            chosen = chosen.astype(np.int64)
        distinct, agreeing = (None if each is None else each[chosen] for each in (self.distinct, self.agreeing))
        rows = {"indices": self.indices[chosen], "scores": self.scores[chosen]}
        return replace(self, **rows, distinct=distinct, agreeing=agreeing)

    def places(self, keypoints0: Keypoints, keypoints1: Keypoints) -> NDArray[np.int64]:
        """(m,) numbers of what the matches join, equal where it is the same two places at other orientations."""
        ends = [each.xy[self.indices[:, side]] for side, each in enumerate((keypoints0, keypoints1))]
        return np.unique(np.concatenate(ends, axis=1), axis=0, return_inverse=True)[1].reshape(-1)

    def once(self, keypoints0: Keypoints, keypoints1: Keypoints) -> "Matches":
        """Only the first of the matches that join the same two places, at whatever orientations."""
        return self.take(np.sort(np.unique(self.places(keypoints0, keypoints1), return_index=True)[1]))

    def swapped(self) -> "Matches":
        """The same matches from the second photograph to the first, without the matrix, which has a direction."""
        order = np.lexsort((self.indices[:, 0], self.indices[:, 1]))
        evidence = self.evidence and self.evidence.swapped()
        return replace(self.take(order), indices=self.indices[order, ::-1], matrix=None, evidence=evidence)

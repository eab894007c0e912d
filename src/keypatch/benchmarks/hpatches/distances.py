"""Distances of descriptors, fast and still exact: products of float32 decide only what they can decide for certain.

Euclidean distances appear squared: their order is the same, and the product form needs no root.
"""

from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from keypatch.metrics.ranking import Rows, squared_distances, squared_lengths
from keypatch.networks.devices import in_threads

Distance = Literal["L2", "L1"]

CHUNK = 4096  # pairs compared at once: their differences, 4 MB of float64, stay in the cache
TILE = 4_000_000  # distances held at once: 16 MB of float32

Indices = NDArray[np.int64]


def listed_distances(rows: Rows, first: Indices, second: Indices, distance: Distance) -> NDArray[np.float32]:
    """The distance of each pair of rows (not squared) from float32 differences, as the public tool has it in pairs."""
    found = np.empty(len(first), np.float32)

    def compare(start: int) -> None:
        part = slice(start, start + CHUNK)
        found[part] = _size(np.take(rows, first[part], axis=0) - np.take(rows, second[part], axis=0), distance)

    for _ in in_threads(compare, range(0, len(first), CHUNK)):
        pass
    return found


def exact_distances(first: Rows, second: Rows, distance: Distance) -> NDArray[np.float64]:
    """(n,): from each row of the first to the same row of the second, Euclidean ones squared; sums in float64."""
    if distance == "L2":
        return squared_distances(first, second)
    found = np.empty(len(first))
    for start in range(0, len(first), CHUNK):
        part = slice(start, start + CHUNK)
        found[part] = np.abs(first[part].astype(np.float64) - second[part]).sum(axis=1)
    return found


def bounded_distances(first: Rows, second: Rows, distance: Distance) -> tuple[Tensor, Tensor]:
    """(n, m), Euclidean ones squared: from every row of the first (n, d) to every row of the second (m, d).

    Beside them (n,): how far the distances of each row may be from what they would be without rounding.
    """
    a, b = torch.tensor(first), torch.tensor(second)
    roundings = a.shape[1] + 6  # of terms that add up to (|a| + |b|)**2, or to |a| + |b|; two are of the centring
    if distance == "L1":
        a, b = a.double(), b.double()
        return torch.cdist(a, b, p=1), roundings * 2.0**-53 * (a.abs().sum(1) + b.abs().sum(1).max())
    centre = b.mean(0)  # products of rows that hardly differ would tell nothing
    a, b = a - centre, b - centre
    a_squares, b_squares = a.square().sum(1), b.square().sum(1)
    values = torch.addmm(b_squares, a, b.T, alpha=-2).add_(a_squares[:, None])
    return values, roundings * 2.0**-24 * (a_squares.sqrt() + b_squares.max().sqrt()).square()


def whole_rows(first: Rows, second: Rows, distance: Distance) -> Tensor:
    """(n, m) float64, not squared, every sum made in the same way: equal rows have equal distances."""
    a, b = torch.tensor(first).double(), torch.tensor(second).double()
    return torch.cdist(a, b, p=1.0 if distance == "L1" else 2.0, compute_mode="donot_use_mm_for_euclid_dist")


def _size(difference: Rows, distance: Distance) -> NDArray[np.float64]:
    if distance == "L1":
        return np.asarray(np.abs(difference).sum(axis=1))
    return np.sqrt(squared_lengths(difference.astype(np.float64)))

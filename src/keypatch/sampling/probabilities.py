"""AdaSample's probabilities: of each row of candidates, which one is taken."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_SMALLEST = 1e-6  # a distance of 0 has no logarithm; where all are 0 they become equal


def power_probabilities(distances: Floats, exponent: float, allowed: Bools) -> Floats:
    """Eq. 12 and 13: p proportional to d^exponent among the allowed candidates of each row, (n, k).

    Through logarithms: 0.2^100 and its like would underflow to 0/0. Every row needs an allowed candidate.
    """
    logits = np.where(allowed, exponent * np.log(np.maximum(distances, _SMALLEST)), -np.inf)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return _shares(powers)


def hardest_probabilities(distances: Floats, allowed: Bools) -> Floats:
    """The limit of an infinite exponent: all on the largest distance, shared equally among equals, (n, k)."""
    largest = np.where(allowed, distances, -np.inf).max(axis=1, keepdims=True)
    return _shares(np.where(allowed & (distances == largest), 1.0, 0.0))


def pick(probabilities: Floats, rng: np.random.Generator) -> NDArray[np.int64]:
    """One column of each row (n,), by its probability (Gumbel-max); never one of probability 0."""
    with np.errstate(divide="ignore"):
        logits = np.log(probabilities)
    picked: NDArray[np.int64] = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    return picked


def _shares(x: Floats) -> Floats:
    shares: Floats = x / x.sum(axis=1, keepdims=True)
    return shares

"""How far descriptors use their space: moments of the cosines of pairs that do not match."""

import numpy as np
from numpy.typing import NDArray

from keypatch.errors import KeypatchError


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

"""HPatches' optional treatment of descriptors: whitened by the training part of the split, then the power law."""

import numpy as np
from numpy.typing import NDArray

from keypatch.benchmarks.hpatches_descriptors import StripDescriptors
from keypatch.patches.hpatches import STRIPS

KEPT = 0.6  # eigenvalues below the one at this place among the sorted are raised to it


def find_whitening(rows: NDArray[np.float32]) -> NDArray[np.float64]:
    """(dim, dim) of training descriptors (n, dim): V diag(eigenvalue ** -1/2) V' of their covariance."""
    centred = rows.astype(np.float64) - rows.mean(axis=0, dtype=np.float64)
    eigenvalues, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    raised = np.maximum(eigenvalues, np.sort(eigenvalues)[int(KEPT * len(eigenvalues))])
    with np.errstate(divide="ignore", invalid="ignore"):  # constant descriptors end as zeros
        return np.asarray((vectors / np.sqrt(raised)) @ vectors.T)


def whiten(descriptors: StripDescriptors, whitening: NDArray[np.float64]) -> StripDescriptors:
    """Every strip less its own mean, whitened, signed square roots, unit length; a row without direction is zeros."""
    rows = np.empty_like(descriptors.rows)
    start = 0
    for count in np.repeat(descriptors.counts, len(STRIPS)).tolist():
        part = descriptors.rows[start : start + count]
        with np.errstate(invalid="ignore"):
            whitened = (part - part.mean(axis=0, dtype=np.float64)) @ whitening
        rooted = np.sign(whitened) * np.sqrt(np.abs(whitened))
        lengths = np.linalg.norm(rooted, axis=1, keepdims=True)
        known = np.isfinite(lengths) & (lengths > 0)
        rows[start : start + count] = np.divide(rooted, lengths, out=np.zeros_like(rooted), where=known)
        start += count
    return StripDescriptors(descriptors.names, descriptors.counts, rows)

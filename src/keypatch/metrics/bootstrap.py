"""Bootstrap intervals of scores: a score's values on resampled data, and the interval they give."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, stdtrit

from keypatch.errors import KeypatchError

REPLICATES = 1000
_BLOCK = 1_000_000  # units drawn at once: 8 MB of indices

Statistic = Callable[[NDArray[np.int64]], float | tuple[float, ...]]


def draw_counts(count: int, replicates: int = REPLICATES, seed: int = 0) -> Iterator[NDArray[np.int64]]:
    """How often each of `count` units is drawn, (count,) for one replicate after the other.

    The k-th draw depends on `count` and `seed` alone, so two descriptors on the same data see the same draws and the
    difference of their k-th replicates is a replicate of their difference.
    """
    for block in _draw(count, replicates, seed):
        for drawn in block:
            yield np.bincount(drawn, minlength=count)


def bootstrap(statistic: Statistic, count: int, replicates: int = REPLICATES, seed: int = 0) -> NDArray[np.float64]:
    """(replicates,): a statistic of how often each of `count` units counts, on units drawn with replacement.

    (replicates, k) for a statistic that gives k numbers at once.
    """
    return np.array([statistic(counts) for counts in draw_counts(count, replicates, seed)], np.float64)


def bootstrap_mean(values: ArrayLike, replicates: int = REPLICATES, seed: int = 0) -> NDArray[np.float64]:
    """(replicates,): the mean of values (count,), one for each unit, on the draws of `draw_counts`."""
    units = np.asarray(values, np.float64)
    if units.ndim != 1 or np.isnan(units).any():
        raise KeypatchError(f"Bootstrapping a mean needs a list of numbers without nan; found shape {units.shape}.")
    return np.concatenate([units[block].mean(axis=1) for block in _draw(len(units), replicates, seed)])


def interval(values: ArrayLike, count: int, level: float = 0.95) -> tuple[float, float]:
    """The expanded percentile interval of replicates (Hesterberg 2015), which covers the truth at the rate `level`.

    Plain percentiles are too narrow for few units: replicates spread by the factor sqrt((n - 1) / n) too little, and
    a normal quantile stands where Student's t should. Both are made good by taking percentiles farther out. Replicates
    that are nan, draws on which the score is not defined, are left out; nan for fewer than two units.
    """
    replicates = np.asarray(values, np.float64)
    defined = replicates[~np.isnan(replicates)]
    if count < 2 or not defined.size:
        return float("nan"), float("nan")
    tail = ndtr(np.sqrt(count / (count - 1)) * stdtrit(count - 1, (1 - level) / 2))
    low, high = np.quantile(defined, [tail, 1 - tail])
    return float(low), float(high)


def _draw(count: int, replicates: int, seed: int) -> Iterator[NDArray[np.int64]]:
    """Indices of the drawn units, (some, count), in all `replicates` rows."""
    if count < 1:
        raise KeypatchError("A bootstrap needs at least one unit to draw from.")
    rng = np.random.default_rng(seed)
    rows = max(1, _BLOCK // count)
    for start in range(0, replicates, rows):
        yield rng.integers(0, count, (min(rows, replicates - start), count))

"""Descriptors: their lengths."""

from dataclasses import dataclass

import numpy as np

from keypatch.doctor.stated import Floats

TOLERANCE = 0.05  # float16 and bytes round by less; lengths that differ on purpose spread wider


@dataclass(frozen=True)
class Lengths:
    expected: float | None  # None: any length may be meant
    median: float
    low: float  # 5 % are shorter
    high: float  # 5 % are longer
    transposed: bool = False  # the array's other axis counts the keypoints

    @property
    def are_right(self) -> bool:
        """A few may be 0: flat patches have no direction."""
        expected = self.expected or 1.0
        return all(abs(value - expected) <= TOLERANCE * expected for value in (self.median, self.high, self.low))


def measure_lengths(descriptors: Floats, expected: float | None, transposed: bool = False) -> Lengths:
    """Euclidean lengths of the rows (n, dim), n > 0, that are not 0, or 0 where most are."""
    lengths = np.linalg.norm(descriptors, axis=1)
    kept = lengths[lengths > 0] if 2 * np.count_nonzero(lengths) > len(lengths) else lengths
    low, median, high = np.percentile(kept, [5, 50, 95])
    return Lengths(expected, float(median), float(low), float(high), transposed)

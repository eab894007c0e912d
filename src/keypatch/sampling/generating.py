"""Positive generation: rotated copies of a class's patches where it has too few."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from keypatch.patches import Classes
from keypatch.sampling.draws import Draw

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Generated:
    """AdaSample's '*': each class is brought to `generate` patches by random rotations of those it has.

    Slot j of a class is its patch j; beyond the last, its patches follow again, turned by an angle that is uniform
    within +-`rotation` degrees and stays the same during a training. A class that has more patches keeps them all.
    """

    generate: int = 15  # 0: real patches only
    rotation: float = 25.0  # degrees; the paper prints no range

    def slots(self, classes: Classes) -> Ints:
        """How many slots each class has, (count,)."""
        return np.maximum(np.diff(classes.starts), self.generate)

    def patches(self, classes: Classes, chosen: Ints, slots: Ints, seed: int) -> Draw:
        """What stands in the slots (n, views) of the chosen classes (n,); -1 stays -1."""
        start = classes.starts[chosen, None]
        size = classes.starts[chosen + 1, None] - start
        indices = np.where(slots >= 0, classes.members[start + slots % size], -1)
        if not self.generate:
            return Draw(indices, chosen)
        angles = self.rotation * (2 * uniform(seed, chosen[:, None], slots) - 1)
        return Draw(indices, chosen, np.where(slots >= size, angles, 0.0))


def uniform(seed: int, *keys: Ints) -> NDArray[np.float64]:
    """Numbers in [0, 1), each a function of the seed and its keys alone; the keys broadcast.

    A hash instead of a generator: the slots of a batch are scattered over millions, and any of them is needed alone.
    """
    state = _mix(np.array([seed & (2**64 - 1)], np.uint64))
    for key in keys:
        state = _mix(state ^ _mix(key.astype(np.uint64)))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mix(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """One step of SplitMix64 (Steele, Lea and Flood 2014); products wrap around."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))

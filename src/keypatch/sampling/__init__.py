"""Which patches make a batch, and how they are changed."""

from keypatch.sampling.augmentation import Augmentation
from keypatch.sampling.random_pairs import RandomPairs

SAMPLERS = {"RandomPairs": RandomPairs}

__all__ = ["SAMPLERS", "Augmentation", "RandomPairs"]

"""Which patches make a batch, and how they are changed."""

from keypatch.parts import table
from keypatch.sampling.adaptive import AdaptivePairs
from keypatch.sampling.augmentation import Augmentation, Place, turn_patches
from keypatch.sampling.draws import Draw, Sampler
from keypatch.sampling.random_pairs import RandomPairs
from keypatch.sampling.random_triplets import RandomTriplets
from keypatch.sampling.several_per_point import SeveralPerPoint

SAMPLERS: dict[str, type] = table(
    "sampler",
    {sampler.__name__: sampler for sampler in (RandomPairs, RandomTriplets, SeveralPerPoint, AdaptivePairs)},
)

__all__ = [
    "SAMPLERS",
    "AdaptivePairs",
    "Augmentation",
    "Draw",
    "Place",
    "RandomPairs",
    "RandomTriplets",
    "Sampler",
    "SeveralPerPoint",
    "turn_patches",
]

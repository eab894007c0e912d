"""TFeat (Balntas et al., BMVC 2016), as in the authors' code."""

from dataclasses import replace

from keypatch.losses import Raw, ThirdPatch, Triplet
from keypatch.networks import TFeat
from keypatch.sampling import Augmentation, RandomTriplets
from keypatch.training import SGD, Recipe, Steps

TFEAT = Recipe(
    name="tfeat",
    network=TFeat(),
    sampler=RandomTriplets(pairs=300),
    augment=Augmentation(flips="hynet"),  # the same for all three patches
    mining=ThirdPatch(swap=True),
    loss=(Triplet(margin=2.0, measure=Raw()),),  # distances of the tanh outputs, which are not made unit
    optimizer=SGD(lr=0.1, momentum=0.0, weight_decay=1e-4),
    schedule=Steps(at=tuple(tenth / 30 for tenth in range(1, 30)), gamma=0.8),  # every 10 epochs
    pairs=300_000_000,  # 300 epochs of 1 million
)
TFEAT_NOSWAP = replace(TFEAT, name="tfeat_noswap", mining=ThirdPatch(swap=False))

RECIPES = (
    (TFEAT, "two convolutions with tanh, random triplets with anchor swap"),
    (TFEAT_NOSWAP, "the same without anchor swap"),
)

PUBLISHED: dict[str, tuple[str, ...]] = {"tfeat": (), "tfeat_noswap": ()}

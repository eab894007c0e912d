"""HardNet (Mishchuk et al., NeurIPS 2017), as in the authors' code."""

from keypatch.losses import Hardest, Triplet
from keypatch.networks import L2Net
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.training import SGD, Linear, Recipe

HARDNET = Recipe(
    name="hardnet",
    network=L2Net(dropout=0.3, gain=0.6),
    sampler=RandomPairs(pairs=1024),
    augment=Augmentation(flips="hardnet"),
    mining=Hardest(blocks=("rows", "columns")),
    loss=(Triplet(margin=1.0),),
    branches="apart",  # two forward passes
    optimizer=SGD(lr=10.0, momentum=0.9, dampening=0.9, weight_decay=1e-4),
    schedule=Linear(),
    pairs=50_000_000,  # 10 epochs of 5 million
)

RECIPES = ((HARDNET, "the hardest negative of rows and columns, margin 1"),)

PUBLISHED: dict[str, tuple[str, ...]] = {"hardnet": ()}

"""The dynamic soft margin (Zhang and Rusinkiewicz, ICCV 2019), as in the authors' code."""

from keypatch.losses import DynamicMargin, Hardest
from keypatch.networks import L2Net
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.training import SGD, Linear, Recipe

CDF = Recipe(
    name="cdf",
    network=L2Net(dropout=0.1, gain=0.6),
    sampler=RandomPairs(pairs=1024),
    augment=Augmentation(flips="dihedral"),
    mining=Hardest(blocks=("rows", "columns")),
    loss=(DynamicMargin(bins=512),),
    branches="together",  # one forward pass
    optimizer=SGD(lr=0.1, momentum=0.9, weight_decay=1e-4),
    schedule=Linear(),
    pairs=102_400_000,  # 100,000 steps
)

RECIPES = ((CDF, "triplets weighted by the share of easier ones, from a running histogram"),)

# Where the text differs from the recipe above: `--as-published`.
PUBLISHED = {"cdf": ("loss.rate=0.01",)}

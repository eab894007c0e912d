"""HyNet (Tian et al., NeurIPS 2020), as in the authors' code."""

from keypatch.losses import Hardest, HybridTriplet, NormDifference
from keypatch.networks import HyNet
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.training import Adam, Constant, Recipe

HYNET = Recipe(
    name="hynet",
    network=HyNet(dropout=0.3),
    sampler=RandomPairs(pairs=512),  # the paper's batch of 1024 counts patches
    augment=Augmentation(flips="hynet"),
    mining=Hardest(blocks=("anchors", "positives", "rows", "columns")),
    loss=(HybridTriplet(alpha=2.0, margin=1.2), NormDifference(weight=0.1)),
    branches="apart",
    optimizer=Adam(lr=0.01),
    schedule=Constant(),
    pairs=44_953_600,  # 200 epochs of 439 batches (Liberty)
)

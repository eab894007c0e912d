"""L2-Net (Tian et al., CVPR 2017). No training code is public: losses and settings are known from memory."""

from dataclasses import replace

from keypatch.losses import BatchSoftmax, Correlation, IntermediateSoftmax
from keypatch.networks import CentralSurround, L2Net
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.training import SGD, Recipe, Steps

E1 = BatchSoftmax(weight=0.5)
E2 = Correlation()
E3 = IntermediateSoftmax(scaled=True, weight=0.5)  # unscaled, products of 32,768 numbers drown E1

L2NET = Recipe(
    name="l2net",
    network=L2Net(dropout=0.0, gain=0.6),
    sampler=RandomPairs(pairs=128),  # twice 64
    augment=Augmentation(flips="hynet"),
    loss=(E1, E2, E3),
    branches="apart",
    optimizer=SGD(lr=1.28, momentum=0.9, weight_decay=1e-4),  # 0.01 for sums over 128 pairs
    schedule=Steps(at=(0.4, 0.8), gamma=0.1),
    pairs=50_000_000,  # HardNet's
)
L2NET_CS = replace(
    L2NET,
    name="l2net_cs",
    network=CentralSurround(dropout=0.0),
    loss=(E1, E2),
)

RECIPES = (
    (L2NET, "softmax over the batch, correlations of dimensions, and the same softmax on the first and last maps"),
    (L2NET_CS, "two towers, for the whole patch and its middle: 256 numbers"),
)

# Where the text differs from the recipe above: `--as-published`.
PUBLISHED = {
    "l2net": ("loss.Correlation.weight=127", "loss.IntermediateSoftmax.scaled=false"),  # d (d - 1) / n: the sum
    "l2net_cs": (),
}

"""Fine-tuning of a trained descriptor on a small set of one's own, as `keypatch adapt` does it."""

from dataclasses import replace

from keypatch.networks import HyNet
from keypatch.recipes.hynet import HYNET
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.training import Adam, Linear

# Flips, noise, dropout and branches are those of the shipped weights (docs/results/first-training.md); rate, batch and
# budget were tried on three scenes (docs/your-own-descriptor.md).
ADAPT = replace(
    HYNET,
    name="adapt",
    network=HyNet(dropout=0.1),
    sampler=RandomPairs(pairs=512),
    augment=Augmentation(flips="dihedral", detector_noise=1.25),
    branches="together",
    optimizer=Adam(lr=0.0005),
    schedule=Linear(warmup=0.05),
    average=0.99,
    pairs=20_000,
    needs_weights=True,
)

RECIPES = ((ADAPT, "HyNet's loss at a low learning rate, to fine-tune trained weights on a small set (--from)"),)

"""Fine-tuning of a trained descriptor on a small set of one's own, as `keypatch adapt` does it."""

from dataclasses import replace

from keypatch.networks import HyNet
from keypatch.recipes.hynet import HYNET
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.training import Adam, Linear

# Flips, dropout and branches are those of the shipped weights (docs/results/first-training.md); rate, batch, noise and
# budget were tried on three scenes (docs/your-own-descriptor.md): patches cut at detections have noise of their own.
ADAPT = replace(
    HYNET,
    name="adapt",
    network=HyNet(dropout=0.1),
    sampler=RandomPairs(pairs=128),
    augment=Augmentation(flips="dihedral", detector_noise=0.5),
    branches="together",
    optimizer=Adam(lr=0.0005),
    schedule=Linear(warmup=0.05),
    average=0.99,
    pairs=20_000,
    needs_weights=True,
)

RECIPES = ((ADAPT, "HyNet's loss at a low learning rate, to fine-tune trained weights on a small set (--from)"),)

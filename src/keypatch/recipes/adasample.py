"""AdaSample (Zhang et al., 2019), positives chosen by their distance: from the text, the authors gave no code."""

from dataclasses import replace

from keypatch.losses import Euclidean, Hardest, InverseDistance, SecondOrder, Squared, SquaredAngle, Triplet
from keypatch.networks import L2Net
from keypatch.sampling import AdaptivePairs, Augmentation
from keypatch.training import SGD, Recipe, Steps

_EUCLIDEAN = Euclidean()

ADASAMPLE = Recipe(
    name="adasample",
    network=L2Net(dropout=0.3, gain=0.6),  # dropout and initialization as in HardNet
    sampler=AdaptivePairs(pairs=1024, lam=10.0, generate=15),
    augment=Augmentation(flips="dihedral"),
    mining=Hardest(blocks=("rows", "columns")),  # HardNet's; eq. 14 prints ("anchors", "positives")
    loss=(Triplet(margin=1.0, measure=SquaredAngle()),),
    weighting=InverseDistance(),
    branches="apart",
    optimizer=SGD(lr=10.0, momentum=0.5, weight_decay=1e-4),
    schedule=Steps(at=(1 / 3, 2 / 3, 8 / 9)),  # after epochs 30, 60 and 80
    pairs=90_000_000,  # 90 epochs of 1 million
)
ADASAMPLE_HT = replace(
    ADASAMPLE,
    name="adasample_ht",
    sampler=AdaptivePairs(measure=_EUCLIDEAN),
    loss=(Triplet(margin=1.0, measure=Squared()),),
    weighting=InverseDistance(measure=_EUCLIDEAN),
)
HARDPOS = replace(ADASAMPLE, name="hardpos", sampler=AdaptivePairs(hardest=True))
HARDNET_STAR = replace(
    ADASAMPLE, name="hardnet_star", sampler=AdaptivePairs(lam=0.0), loss=(Triplet(margin=1.0),), weighting=None
)
ADASAMPLE_FEW = replace(ADASAMPLE, name="adasample_few", sampler=AdaptivePairs(candidates="few"))
ADASAMPLE_MEMORY = replace(ADASAMPLE, name="adasample_memory", sampler=AdaptivePairs(candidates="memory"))
ADASAMPLE_SOSNET = replace(ADASAMPLE, name="adasample_sosnet", loss=(*ADASAMPLE.loss, SecondOrder(k=8)))

RECIPES = (
    (ADASAMPLE, "positives chosen by distance from 15 rotated and real patches, angular hinge: AdaSample+*"),
    (ADASAMPLE_HT, "the same with Euclidean distances"),
    (HARDPOS, "always the farthest positive"),
    (HARDNET_STAR, "HardNet on the same generated positives, drawn uniformly: HardNet+*"),
    (ADASAMPLE_FEW, "AdaSample choosing among 5 of the 15"),
    (ADASAMPLE_MEMORY, "AdaSample choosing among remembered descriptors"),
    (ADASAMPLE_SOSNET, "AdaSample with SOSNet's second-order term"),
)

# Where the text differs from the recipe above: `--as-published`.
# The text has neither a floor nor a warm-up; 0.001 keeps 1/d finite.
_TEXT = (
    'mining.blocks=["anchors", "positives"]',
    "sampler.warm=0",
    "weighting.normalization=none",
    "weighting.floor=0.001",
)
PUBLISHED = {"adasample": _TEXT, "adasample_ht": _TEXT, "hardpos": _TEXT, "hardnet_star": ()}

"""Spread-out descriptors, GOR (Zhang et al., ICCV 2017), each base loss with and without the regularization."""

from dataclasses import replace

from keypatch.losses import Lifted, NPair, PairContrastive, SpreadOut, ThirdPatch, Triplet
from keypatch.networks import SpreadOutNet
from keypatch.recipes.hardnet import HARDNET
from keypatch.sampling import Augmentation, RandomPairs, RandomTriplets, SeveralPerPoint
from keypatch.training import SGD, Recipe, Steps

EPOCHS = 20
PER_EPOCH = tuple(epoch / EPOCHS for epoch in range(1, EPOCHS))
GOR = SpreadOut(pairs="third")  # the anchor and its random negative, also where anchors are swapped
GOR_IN_BATCH = SpreadOut(pairs="all")

TRIPLET = Recipe(
    name="triplet",
    network=SpreadOutNet(),
    sampler=RandomTriplets(pairs=128),
    augment=Augmentation(flips="none"),
    mining=ThirdPatch(swap=False),
    loss=(Triplet(margin=0.5),),
    branches="apart",
    optimizer=SGD(lr=0.1, momentum=0.9, weight_decay=0.0),
    schedule=Steps(at=PER_EPOCH, gamma=0.96),
    pairs=EPOCHS * 1_000_000,
)
TRIPLET_SWAP = replace(TRIPLET, name="triplet_swap", mining=ThirdPatch(swap=True))
CONTRASTIVE = replace(
    TRIPLET,
    name="contrastive",
    loss=(PairContrastive(eps_positive=0.7, eps_negative=1.4),),  # eps- is ours, about a right angle
)
NPAIR = replace(
    TRIPLET,
    name="npair",
    sampler=RandomPairs(pairs=128),
    mining=None,
    loss=(NPair(scale=20.0),),  # the scale is ours: unit descriptors without one have almost nothing to gain
)
LIFTED = replace(
    TRIPLET,
    name="lifted",
    sampler=SeveralPerPoint(pairs=64, per_point=4),  # 128 patches
    mining=None,
    loss=(Lifted(margin=1.0, descriptors="raw"),),  # as in the original; GOR looks at the unit ones
    optimizer=SGD(lr=0.01, momentum=0.9, weight_decay=0.0),  # raw descriptors have no bound: at 0.1 the loss overflows
)

GOR_TRIPLET = replace(TRIPLET, name="gor_triplet", loss=(*TRIPLET.loss, GOR))
GOR_TRIPLET_SWAP = replace(TRIPLET_SWAP, name="gor_triplet_swap", loss=(*TRIPLET_SWAP.loss, GOR))
GOR_CONTRASTIVE = replace(
    CONTRASTIVE,
    name="gor_contrastive",
    loss=(PairContrastive(eps_positive=0.7), GOR),  # in place of the non-matching part
)
GOR_NPAIR = replace(NPAIR, name="gor_npair", loss=(*NPAIR.loss, GOR_IN_BATCH))
GOR_LIFTED = replace(LIFTED, name="gor_lifted", loss=(*LIFTED.loss, GOR_IN_BATCH))
HARDNET_GOR = replace(
    HARDNET,
    name="hardnet_gor",
    sampler=RandomTriplets(pairs=128),
    augment=Augmentation(flips="none"),
    loss=(*HARDNET.loss, GOR),
    pairs=10_000_000,  # 10 epochs of 1 million
)

RECIPES = (
    (GOR_TRIPLET, "random triplets, and cosines of unrelated pairs with mean 0 and second moment 1/d"),
    (GOR_TRIPLET_SWAP, "the same with anchor swap: the paper's best"),
    (GOR_CONTRASTIVE, "matching pairs pulled under 0.7; the regularization in place of the non-matching part"),
    (GOR_NPAIR, "softmax over the positives of the batch, regularized"),
    (GOR_LIFTED, "all pairs of the batch against all negatives, regularized"),
    (HARDNET_GOR, "HardNet with a third patch for the regularization only"),
    (TRIPLET, "the base loss alone: random triplets, margin 0.5"),
    (TRIPLET_SWAP, "the base loss alone: random triplets with anchor swap"),
    (CONTRASTIVE, "the base loss alone: a margin for matching and one for non-matching pairs"),
    (NPAIR, "the base loss alone: N-pair (Sohn, NIPS 2016) on unit descriptors"),
    (LIFTED, "the base loss alone: lifted structure (Song et al., CVPR 2016)"),
)

# Where the text differs from the recipe above: `--as-published`.
PUBLISHED: dict[str, tuple[str, ...]] = {
    "gor_triplet": (),
    "gor_triplet_swap": (),
    "gor_contrastive": (),
    "gor_npair": ("loss.NPair.scale=1",),
    "hardnet_gor": (),
    "triplet": (),
    "triplet_swap": (),
    "contrastive": (),
    "npair": ("loss.NPair.scale=1",),
}

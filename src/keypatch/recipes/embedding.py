"""Embedding of whole images: lifted structure (Song et al., CVPR 2016), alone and with GOR (Zhang et al. 2017)."""

from dataclasses import replace

from keypatch.losses import Lifted, SpreadOut
from keypatch.networks import EmbeddingNet
from keypatch.sampling import Augmentation, SeveralPerPoint
from keypatch.training import SGD, Constant, Recipe

EMBEDDING_LIFTED = Recipe(
    name="embedding_lifted",
    network=EmbeddingNet(dim=128),
    sampler=SeveralPerPoint(pairs=64, per_point=4),  # 128 images
    augment=Augmentation(flips="none"),  # a mirrored character is another one
    loss=(Lifted(margin=1.0, descriptors="raw"),),  # on the sphere no distance is large enough for its log of a sum
    # The published rate, 1e-4, is for a network that was trained before; this one starts from nothing.
    optimizer=SGD(lr=0.003, momentum=0.9, weight_decay=2e-4),
    last_layer=10.0,
    schedule=Constant(),
    pairs=1_280_000,  # 20,000 steps
)
EMBEDDING_LIFTED_GOR = replace(
    EMBEDDING_LIFTED,
    name="embedding_lifted_gor",
    loss=(*EMBEDDING_LIFTED.loss, SpreadOut(pairs="all")),
)

RECIPES = (
    (EMBEDDING_LIFTED, "images in class folders: all pairs of the batch against all negatives, on a small network"),
    (EMBEDDING_LIFTED_GOR, "the same, and cosines of unrelated images with mean 0 and second moment 1/d"),
)

# Where the text differs from the recipe above: `--as-published`.
_TEXT = ("optimizer.lr=0.0001",)  # for a network that was trained before
PUBLISHED = {"embedding_lifted": _TEXT, "embedding_lifted_gor": _TEXT}

"""HyNet (Tian et al., NeurIPS 2020), as in the authors' code, and the rows of the paper's ablation."""

from dataclasses import replace

from keypatch.losses import (
    Hardest,
    HybridTriplet,
    InnerProduct,
    NormDifference,
    SecondOrder,
    SquaredTriplet,
    Triplet,
    TwoMeasureTriplet,
)
from keypatch.networks import HyNet
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.training import Adam, Constant, Recipe

NORMS = NormDifference(weight=0.1)  # gamma R_L2

HYNET = Recipe(
    name="hynet",
    network=HyNet(dropout=0.3),
    sampler=RandomPairs(pairs=512),  # the paper's batch of 1024 counts patches
    augment=Augmentation(flips="hynet"),
    mining=Hardest(blocks=("anchors", "positives", "rows", "columns")),
    loss=(HybridTriplet(alpha=2.0, margin=1.2), NORMS),
    branches="apart",
    optimizer=Adam(lr=0.01),
    schedule=Constant(),
    pairs=44_953_600,  # 200 epochs of 439 batches (Liberty)
)

# Table 3. The margins of s and d are not given there; these are the ones L_B has for them.
HYNET_NO_NORM = replace(HYNET, name="hynet_no_norm", loss=(HybridTriplet(alpha=2.0, margin=1.2),))
HYNET_D = replace(HYNET, name="hynet_d", loss=(Triplet(margin=1.2), NORMS))
HYNET_S = replace(HYNET, name="hynet_s", loss=(Triplet(margin=0.9, measure=InnerProduct()), NORMS))
HYNET_BN = replace(HYNET, name="hynet_bn", network=HyNet(dropout=0.3, normalization="batch"))
HYNET_IN = replace(HYNET, name="hynet_in", network=HyNet(dropout=0.3, normalization="instance"))
HARDNET_FRN = replace(
    HYNET, name="hardnet_frn", mining=Hardest(blocks=("rows", "columns")), loss=(Triplet(margin=1.0),)
)
SOSNET_FRN = replace(HYNET, name="sosnet_frn", loss=(SquaredTriplet(margin=1.0), SecondOrder(k=8)))

# Equation 9.
HYNET_LA = replace(HYNET, name="hynet_la", loss=(TwoMeasureTriplet(margin=1.0), NORMS))
HYNET_LB = replace(
    HYNET,
    name="hynet_lb",
    loss=(Triplet(margin=0.9, measure=InnerProduct(), weight=2.0), Triplet(margin=1.2), NORMS),
)

RECIPES = (
    (HYNET, "hybrid similarity and equal norms, on the trunk with filter response normalization"),
    (HYNET_NO_NORM, "without the term on the norms (table 3)"),
    (HYNET_D, "the distance alone in place of the hybrid similarity (table 3)"),
    (HYNET_S, "the inner product alone in place of the hybrid similarity (table 3)"),
    (HYNET_BN, "batch normalization in the trunk (table 3)"),
    (HYNET_IN, "instance normalization in the trunk (table 3)"),
    (HARDNET_FRN, "HardNet's loss in HyNet's network and training (table 3)"),
    (SOSNET_FRN, "SOSNet's loss in HyNet's network and training (table 3)"),
    (HYNET_LA, "inner product for positives, distance for negatives (L_A of equation 9)"),
    (HYNET_LB, "two stacked hinges, of inner products and of distances (L_B of equation 9)"),
)

# Where the text differs from the recipe above: `--as-published`.
_MINING = (
    'mining.blocks=["rows", "columns"]'  # HardNet's, which the text follows for figure 2; for training it is silent
)
_Z = "loss.HybridTriplet.z=inside"  # equation 6
PUBLISHED = {
    "hynet": (_MINING, _Z),
    "hynet_no_norm": (_MINING, _Z),
    "hynet_d": (_MINING,),
    "hynet_s": (_MINING,),
    "hynet_bn": (_MINING, _Z),
    "hynet_in": (_MINING, _Z),
    "hardnet_frn": (),
    "sosnet_frn": ("loss.SecondOrder.neighbours=paper",),
    "hynet_la": (_MINING,),
    "hynet_lb": (_MINING,),
}

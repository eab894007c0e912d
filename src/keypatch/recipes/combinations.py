"""Parts of different papers in one recipe."""

from dataclasses import replace

from keypatch.losses import InverseDistance, SpreadOut
from keypatch.recipes.hynet import HYNET
from keypatch.recipes.sdgmnet import SDGMNET
from keypatch.sampling import AdaptivePairs

ADASAMPLE_HYNET = replace(HYNET, name="adasample_hynet", sampler=AdaptivePairs(pairs=512), weighting=InverseDistance())
ADASAMPLE_SDGM = replace(SDGMNET, name="adasample_sdgm", sampler=AdaptivePairs(), weighting=InverseDistance())
SDGMNET_GOR = replace(SDGMNET, name="sdgmnet_gor", loss=(*SDGMNET.loss, SpreadOut()))

RECIPES = (
    (ADASAMPLE_HYNET, "AdaSample's positives and weights, HyNet's network and similarity"),
    (ADASAMPLE_SDGM, "AdaSample's positives, SDGMNet's modulated gradients"),
    (SDGMNET_GOR, "SDGMNet's modulated gradients, and descriptors spread out"),
)

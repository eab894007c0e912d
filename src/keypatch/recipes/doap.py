"""DOAP (He et al., CVPR 2018). No training code is public: the loss is from memory, the training is HardNet's."""

from keypatch.losses import AveragePrecision
from keypatch.networks import L2Net
from keypatch.sampling import Augmentation, SeveralPerPoint
from keypatch.training import SGD, Linear, Recipe

DOAP = Recipe(
    name="doap",
    network=L2Net(dropout=0.0, gain=0.6),
    sampler=SeveralPerPoint(pairs=1024, per_point=4),
    augment=Augmentation(flips="dihedral"),
    loss=(AveragePrecision(formula="tie-aware", distances="plain", bins=25),),
    branches="apart",
    optimizer=SGD(lr=1.0, momentum=0.9, weight_decay=1e-4),  # HardNet's lr 10 with dampening 0.9
    schedule=Linear(),
    pairs=50_000_000,
)

RECIPES = ((DOAP, "average precision of each patch's ranking of the batch, through soft histograms"),)

PUBLISHED: dict[str, tuple[str, ...]] = {"doap": ()}

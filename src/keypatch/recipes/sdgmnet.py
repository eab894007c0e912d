"""SDGMNet (Ma and Deng, 2021): the paper's loss in the authors' network and training, and the paper's comparisons."""

from dataclasses import replace

from keypatch.losses import ActiveGap, AntiNoise, GradientModulation
from keypatch.networks import SDGMNET_INPUT, HyNet
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.training import SGD, Constant, Recipe, Steps

EPOCH = 1_024_000  # pairs: 1000 batches
LAST_LR = 1 / 512  # after nine halvings of 1

SDGM_RAW = Recipe(
    name="sdgm_raw",
    network=HyNet(dropout=0.3, preprocessing=SDGMNET_INPUT),
    sampler=RandomPairs(pairs=1024),
    augment=Augmentation(flips="dihedral", rotation=5.0, crop=0.1),
    mining=AntiNoise(threshold=0.6, start=0.125),
    loss=(GradientModulation(m=0.6, alpha=0.9, warmup=0.1),),
    branches="apart",
    optimizer=SGD(lr=1.0, momentum=0.9, weight_decay=1e-4),
    schedule=Steps(at=tuple(k / 10 for k in range(1, 10)), gamma=0.5),
    pairs=200 * EPOCH,
)

# Raw for 200 epochs, then fine-tuned for 20, in one run: every share of the 200 is 200/220 of it here.
SDGMNET = replace(
    SDGM_RAW,
    name="sdgmnet",
    mining=AntiNoise(threshold=0.6, start=25 / 220),
    loss=(GradientModulation(m=0.6, alpha=0.9, warmup=20 / 220, finetune=20 / 220, finetune_m=0.1),),
    schedule=Steps(at=tuple(20 * k / 220 for k in range(1, 10)), gamma=0.5),
    pairs=220 * EPOCH,
)

# The learning rate is not printed; the authors' script keeps the last one.
SDGMNET_FINETUNE = replace(
    SDGM_RAW,
    name="sdgmnet_finetune",
    mining=AntiNoise(threshold=0.6, start=0.0),
    loss=(GradientModulation(m=0.1, alpha=0.9, psm=False, warmup=0.0, rate=0.001, init="restart"),),
    optimizer=SGD(lr=LAST_LR, momentum=0.9, weight_decay=1e-4),
    schedule=Constant(),
    pairs=20 * EPOCH,
    needs_weights=True,
)

SDGM_PHM = replace(SDGM_RAW, name="sdgm_phm", loss=(GradientModulation(m=0.1, alpha=0.9, psm=False),))

SDGM_HNFRN = replace(
    SDGM_RAW, name="sdgm_hnfrn", mining=AntiNoise(threshold=0.6, start=0.0), loss=(ActiveGap(margin=1.0),)
)

RECIPES = (
    (SDGMNET, "gradients weighted by running statistics of the angles, with the fine-tuning at the end of the run"),
    (SDGMNET_FINETUNE, "the fine-tuning alone: start it --from a run of sdgm_raw"),
    (SDGM_RAW, "SDGM-Raw: without fine-tuning (section V-A); the paper's ablations change its fields"),
    (SDGM_PHM, "SDGM-PHM: the fine-tuning's margin, hard and at 0.1, all the way (section V-A)"),
    (SDGM_HNFRN, "HN-FRN: HardNet's loss as in the authors' code, in their network and training"),
)

# Where the text differs from the recipe above: `--as-published`.
_MINING = ('mining.blocks=["rows", "columns"]', "mining.start=0")  # HardNet's; the text names no start
_RATE = "loss.rate=0.001"  # whatever the length
PUBLISHED = {
    "sdgmnet": (*_MINING, _RATE),
    "sdgmnet_finetune": (*_MINING, _RATE),
    "sdgm_raw": (*_MINING, _RATE),
    "sdgm_phm": (*_MINING, _RATE),
    "sdgm_hnfrn": (*_MINING, 'loss=[{type = "Triplet", margin = 1.0}]'),
}

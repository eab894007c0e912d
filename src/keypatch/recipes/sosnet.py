"""SOSNet (Tian et al., CVPR 2019): the loss of the authors' later code on the paper's network."""

from keypatch.losses import Hardest, SecondOrder, SquaredTriplet
from keypatch.networks import L2Net, Preprocessing
from keypatch.sampling import Augmentation, RandomPairs
from keypatch.training import Adam, Constant, Recipe

SOSNET = Recipe(
    name="sosnet",
    network=L2Net(dropout=0.1, preprocessing=Preprocessing(value_range=255.0, normalization="instance")),
    sampler=RandomPairs(pairs=512),
    augment=Augmentation(flips="hynet"),
    mining=Hardest(blocks=("anchors", "positives", "rows", "columns")),
    loss=(SquaredTriplet(margin=1.0), SecondOrder(k=8)),
    branches="apart",
    optimizer=Adam(lr=0.01),
    schedule=Constant(),
    pairs=44_953_600,
)

RECIPES = ((SOSNET, "squared hinge and second-order similarity, on the L2-Net trunk"),)

# Where the text differs from the recipe above: `--as-published`.
PUBLISHED = {"sosnet": ("loss.SecondOrder.neighbours=paper",)}

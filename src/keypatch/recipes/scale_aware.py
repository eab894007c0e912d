"""Scale-aware triplet networks (Keller et al., CVPR 2018): their losses in HardNet's training.

We have not seen the paper's network, optimizer and batch; gamma and delta are a third party's.
"""

from dataclasses import replace

from keypatch.losses import Hardest, MixedContext, ScaleAware
from keypatch.recipes.hardnet import HARDNET

SCALE_AWARE = replace(
    HARDNET,
    name="scale_aware",
    mining=Hardest(blocks=("rows",)),  # the anchor's nearest: scale-aware sampling
    loss=(MixedContext(gamma=0.5, theta_glo=1.1, delta=5.0),),
)
SCALE_AWARE_SUB = replace(SCALE_AWARE, name="scale_aware_sub", loss=(ScaleAware("hinge", "sub", alpha=1.0),))
SCALE_AWARE_SUB2 = replace(SCALE_AWARE, name="scale_aware_sub2", loss=(ScaleAware("hinge", "sub2", alpha=1.0),))
SCALE_AWARE_DIV = replace(SCALE_AWARE, name="scale_aware_div", loss=(ScaleAware("hinge", "div", alpha=1.0),))
SCALE_AWARE_LOG = replace(SCALE_AWARE, name="scale_aware_log", loss=(ScaleAware("log", delta=5.0),))
SCALE_AWARE_SSE = replace(SCALE_AWARE, name="scale_aware_sse", loss=(ScaleAware("sse", delta=5.0),))

RECIPES = (
    (SCALE_AWARE, "the mixed-context loss: a threshold half of the triplet, half global"),
    (SCALE_AWARE_SUB, "the hinge on the difference of distances"),
    (SCALE_AWARE_SUB2, "the hinge on the difference of squared distances"),
    (SCALE_AWARE_DIV, "the hinge on the quotient of distances"),
    (SCALE_AWARE_LOG, "the log loss at scale 5"),
    (SCALE_AWARE_SSE, "the squared softmax at scale 5"),
)

# Where the text differs from the recipe above: `--as-published`.
_TEXT = ("mining.duplicate_threshold=0",)  # equation 84
PUBLISHED = {recipe.name: _TEXT for recipe, _ in RECIPES}

"""The figures of the scale-aware triplet paper, and two sweeps that are ours."""

from keypatch.recipes.scale_aware import SCALE_AWARE, SCALE_AWARE_LOG
from keypatch.studies.papers.plan import Plan, Row, changed

PAPER = "scale-aware"
_OURS = "This sweep is ours; the paper's main text is not at hand."

FIGURE_4 = Plan(
    PAPER,
    "Figure 4",
    "Slopes of the triplet losses",
    "function",
    "the derivative of the log, sse and hinge losses by the performance rho (equations 76-78)",
    varied="the loss and its scale delta",
    notes=("Equation 77 is misprinted; the slope of sse is that of the loss (docs/methods/scale-aware.md).",),
)

FIGURE_8 = Plan(
    PAPER,
    "Figure 8",
    "Precision and recall of the mixed-context loss",
    "pr",
    "precision against recall and average precision, trained on each set and tested on the two others",
    (Row("mixed context", SCALE_AWARE),),
    "the training set",
    ("ap",),
    each=True,
    notes=("The paper's curves carry their average precision in the picture; none is in the text.",),
)

DELTA = Plan(
    PAPER,
    "delta",
    "The scale of the log loss",
    "sweep",
    "FPR95 in %",
    tuple(
        Row(f"delta={delta:g}", changed(SCALE_AWARE_LOG, f"loss.delta={delta:g}"), x=delta, series="log loss")
        for delta in (1.0, 2.0, 5.0, 10.0, 20.0)
    ),
    "delta; 1 is the plain log loss, infinity the hinge",
    ("fpr95",),
    "delta",
    log=True,
    notes=(_OURS,),
)

GAMMA = Plan(
    PAPER,
    "gamma",
    "The share of the triplet's own threshold",
    "sweep",
    "FPR95 in %",
    tuple(
        Row(f"gamma={gamma:g}", changed(SCALE_AWARE, f"loss.gamma={gamma:g}"), x=gamma, series="mixed context")
        for gamma in (0.0, 0.25, 0.5, 0.75, 1.0)
    ),
    "gamma; 0 is a Siamese loss with a global threshold, 1 the triplet's own",
    ("fpr95",),
    "gamma",
    says=("The paper's figure 1 (MNIST, two dimensions): 7.6 % at 0, 4.8 % at 0.5, 12.5 % at 1.",),
    notes=(_OURS,),
)

PLANS = (FIGURE_4, FIGURE_8, DELTA, GAMMA)

"""AdaSample's tables and figures."""

from keypatch.recipes.adasample import ADASAMPLE, ADASAMPLE_HT, HARDNET_STAR
from keypatch.recipes.doap import DOAP
from keypatch.recipes.gor import HARDNET_GOR
from keypatch.recipes.hardnet import HARDNET
from keypatch.recipes.l2net import L2NET, L2NET_CS
from keypatch.studies.papers.plan import OF_OTHERS, PAIRS, STRIPS, Plan, Row, changed, not_run

PAPER = "AdaSample"
_T1, _T3, _HYNET = "AdaSample, Table 1", "AdaSample, Table 3", "HyNet, Table 1"
_STILL = "augment.flips=none"  # without '+'

TABLE_1 = Plan(
    PAPER,
    "Table 1",
    "FPR95 on PhotoTour",
    "splits",
    "FPR95 in %, trained on one set and tested on the two others",
    (
        Row("SIFT", describer="sift", printed=f"{_HYNET}: SIFT"),
        *not_run(("DeepDesc", "GeoDesc"), OF_OTHERS, _T1),
        Row("L2-Net", changed(L2NET, _STILL), printed=f"{_T1}: L2-Net"),
        Row("CS-L2-Net", changed(L2NET_CS, _STILL), printed=f"{_T1}: CS-L2-Net"),
        Row("HardNet", changed(HARDNET, _STILL), printed=f"{_T1}: HardNet"),
        Row("HardNet-GOR", HARDNET_GOR, printed=f"{_T1}: HardNet-GOR"),
        Row("HardNet*", changed(HARDNET_STAR, _STILL), printed=f"{_T1}: HardNet*"),
        Row("AdaSample*", changed(ADASAMPLE, _STILL), printed=f"{_T1}: AdaSample*"),
        Row("L2-Net+", L2NET, printed=f"{_HYNET}: L2-Net"),
        Row("CS-L2-Net+", L2NET_CS, printed=f"{_T1}: CS-L2-Net+"),
        Row("HardNet+", HARDNET, printed=f"{_HYNET}: HardNet"),
        Row("HardNet-GOR+", changed(HARDNET_GOR, "augment.flips=hardnet"), printed=f"{_T1}: HardNet-GOR+"),
        Row("DOAP+", DOAP, printed=f"{_HYNET}: DOAP"),
        Row("HardNet+*", HARDNET_STAR, printed=f"{_T1}: HardNet+*"),
        Row("AdaSample+*", ADASAMPLE, printed=f"{_T1}: AdaSample+*"),
    ),
    "method, flips and quarter turns (+), generated positives (*)",
    PAIRS,
    each=True,
)


def _of_lambda(lam: float | None) -> tuple[Row, Row]:
    """Both losses at a lambda; None is infinity."""
    setting = "sampler.hardest=true" if lam is None else f"sampler.lam={lam:g}"
    name = "inf" if lam is None else f"{lam:g}"
    angular, plain = (
        Row(
            f"lambda={name} {loss}",
            changed(recipe, setting),
            printed=f"AdaSample, Table 2: lambda={name} {loss}",
            x=40.0 if lam is None else lam,
            series=loss,
        )
        for loss, recipe in (("AHT", ADASAMPLE), ("HT", ADASAMPLE_HT))
    )
    return angular, plain


TABLE_2 = Plan(
    PAPER,
    "Table 2",
    "Lambda and the two losses",
    "sweep",
    "mean average precision of the three HPatches tasks in %",
    tuple(row for lam in (1, 2, 5, 10, 20, None) for row in _of_lambda(lam)),
    "lambda, which drives the choice of positives, and the loss: angular (AHT) or Euclidean (HT)",
    STRIPS,
    "lambda (infinity at 40)",
    log=True,
    notes=(
        "Neither the training set nor the split of this table is stated, nor whether patches are flipped and positives "
        "generated; ours does both. Lambda to infinity is always the farthest positive.",
    ),
)

TABLE_3 = Plan(
    PAPER,
    "Table 3",
    "Models from matches (ETH)",
    "models",
    "registered photos, points, observations, track length and reprojection error of COLMAP's model",
    (
        Row("SIFT", describer="sift", printed=f"{_T3}: SIFT"),
        Row("DSP-SIFT", printed=f"{_T3}: DSP-SIFT", why="DSP-SIFT is not in this package"),
        Row("L2-Net", L2NET, printed=f"{_T3}: L2-Net"),
        Row("GeoDesc", printed=f"{_T3}: GeoDesc", why=OF_OTHERS),
        Row("AdaSample", ADASAMPLE, printed=f"{_T3}: AdaSample"),
    ),
    "descriptor",
    ("count.registered", "count.points", "count.observations", "track_length", "error.reprojection"),
    notes=("The training set is not stated, nor whether L2-Net is trained with flips; ours is.",),
)

_LIB = (
    Row("SIFT", describer="sift"),
    *not_run(("DeepDesc", "GeoDesc"), OF_OTHERS, _T1),
    Row("L2-Net", L2NET),
    Row("HardNet-GOR", HARDNET_GOR),
    Row("HardNet", HARDNET),
    Row("DOAP", DOAP),
    Row("AdaSample", ADASAMPLE),
)

FIGURE_1 = Plan(
    PAPER,
    "Figure 1",
    "HPatches: verification, matching, retrieval",
    "bars",
    "mean average precision in %, by task, level of noise and kind of sequence",
    tuple(Row(row.label, row.recipe, row.describer, why=row.why) for row in _LIB),
    "descriptor",
    STRIPS,
    notes=(
        "The paper prints no number of this figure; its methods are taken from appendix C.",
        "It has descriptors trained on Liberty (-LIB) and on the training "
        "part of HPatches, split a (-HP): run the plan once with each as --data.",
    ),
)

_CORRELATED = "The text: Pearson's correlation is consistently greater than 0.8 with training."

FIGURE_2A = Plan(
    PAPER,
    "Figure 2(a)",
    "Probabilities by gradient and by distance",
    "gradients",
    "probability of a pair by the norm of its gradient, against that by its distance",
    (Row("AdaSample", ADASAMPLE),),
    says=(_CORRELATED,),
)

FIGURE_2B = Plan(
    PAPER,
    "Figure 2(b)",
    "Correlation of gradient and distance during training",
    "gradients",
    "Pearson's correlation of the two probabilities at every share of the run",
    (Row("AdaSample", ADASAMPLE), Row("HardNet", HARDNET)),
    "moment of the training",
    says=(_CORRELATED,),
    notes=("HardNet's run beside AdaSample's is ours.",),
)

FIGURE_4 = Plan(
    PAPER,
    "Figure 4",
    "How fast AdaSample and HardNet learn",
    "run",
    "mean average precision of the HPatches tasks in % along the run",
    (Row("AdaSample", ADASAMPLE), Row("HardNet", HARDNET)),
    "sampling of positives",
    STRIPS,
    says=("The text: significantly better convergence speed. Trained and tested on HPatches, split a.",),
    notes=("What the figure measures is not in the text; ours are the three tasks.",),
)

PLANS = (TABLE_1, TABLE_2, TABLE_3, FIGURE_1, FIGURE_2A, FIGURE_2B, FIGURE_4)

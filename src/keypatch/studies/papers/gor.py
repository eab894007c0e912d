"""The tables and figures of GOR, "Learning spread-out local feature descriptors"."""

from keypatch.recipes.embedding import EMBEDDING_IMAGES, EMBEDDING_IMAGES_GOR
from keypatch.recipes.gor import (
    CONTRASTIVE,
    GOR_CONTRASTIVE,
    GOR_NPAIR,
    GOR_TRIPLET,
    GOR_TRIPLET_SWAP,
    NPAIR,
    TRIPLET,
    TRIPLET_SWAP,
)
from keypatch.recipes.tfeat import TFEAT, TFEAT_NOSWAP
from keypatch.studies.papers.plan import OF_OTHERS, PAIRS, Plan, Row, changed, not_run

PAPER = "GOR"
_T1 = "GOR, Table 1"
_BASE = "The baseline is triplets with anchor swap in the same network (TL+AS), as in the paper's figures 4 and 5."
_NO_SWAP = 'The text says "triplet loss" and does not mention anchor swap for this figure: ours has none.'

TABLE_1 = Plan(
    PAPER,
    "Table 1",
    "FPR95 on PhotoTour",
    "splits",
    "FPR95 in %, trained on one set and tested on the two others",
    (
        Row("SIFT", describer="sift", printed="HyNet, Table 1: SIFT"),
        *not_run(("VGG-Opt", "DeepCompare_siam", "DeepCompare_2str", "DeepDesc"), OF_OTHERS, _T1),
        Row("CL", CONTRASTIVE),
        Row("CL+GOR", GOR_CONTRASTIVE, printed=f"{_T1}: CL+GOR"),
        *not_run(("TGLoss",), OF_OTHERS, _T1),
        Row("TFeat", TFEAT_NOSWAP, printed=f"{_T1}: TFeat"),
        Row("TFeat+AS", TFEAT, printed=f"{_T1}: TFeat+AS"),
        Row("TL", TRIPLET),
        Row("TL+GOR", GOR_TRIPLET, printed=f"{_T1}: TL+GOR"),
        Row("TL+AS", TRIPLET_SWAP),
        Row("TL+AS+GOR", GOR_TRIPLET_SWAP, printed=f"{_T1}: TL+AS+GOR"),
        Row("N-pair", NPAIR, printed=f"{_T1}: N-pair"),
        Row("N-pair+GOR", GOR_NPAIR, printed=f"{_T1}: N-pair+GOR"),
    ),
    "base loss, with and without the regularization",
    PAIRS,
    each=True,
    notes=(
        "CL, TL and TL+AS without GOR are not in the paper's table, which has TFeat's own network in their place.",
        "By which definition of FPR95 the paper's own rows were counted is not known (docs/methods/gor.md).",
    ),
)

FIGURE_2 = Plan(
    PAPER,
    "Figure 2",
    "Inner products of random unit vectors",
    "function",
    "the density of the inner product of two random points of the sphere (proposition 1)",
    varied="the dimension d",
    notes=("Which dimensions the figure has is not in the text.",),
)

FIGURE_4 = Plan(
    PAPER,
    "Figure 4",
    "ROC curves with and without GOR",
    "roc",
    "true-positive against false-positive rate, trained on Notre Dame, tested on Liberty and Yosemite",
    (Row("TL+AS", TRIPLET_SWAP), Row("TL+AS+GOR", GOR_TRIPLET_SWAP)),
    "the regularization",
    PAIRS,
    says=("The text: the gain is universal at different false-positive rates.",),
)

FIGURE_5 = Plan(
    PAPER,
    "Figure 5",
    "Cosines of matching and of other pairs",
    "similarity",
    "density of the cosine of test pairs, trained on Notre Dame, tested on Liberty",
    (Row("TL+AS", TRIPLET_SWAP), Row("TL+AS+GOR", GOR_TRIPLET_SWAP)),
    "the regularization",
    PAIRS,
    says=(
        "The text: with GOR the overlap of the two histograms is 15 % smaller; d times the second moment is about 50 "
        "after triplets and about 2 after N-pair.",
    ),
    notes=(_BASE,),
)

FIGURE_6A = Plan(
    PAPER,
    "Figure 6(a)",
    "The weight of the regularization",
    "sweep",
    "FPR95 in %, trained on Notre Dame, tested on Liberty, d = 128",
    (
        Row("alpha=0", TRIPLET, x=0.0, series="TL+GOR"),
        *(
            Row(f"alpha={alpha:g}", changed(GOR_TRIPLET, f"loss.SpreadOut.weight={alpha:g}"), x=alpha, series="TL+GOR")
            for alpha in (0.01, 0.1, 1.0, 10.0)
        ),
    ),
    "alpha, the weight of GOR beside the triplet loss",
    PAIRS,
    "alpha (0 is the triplet loss alone)",
    log=True,
    split=("notredame", "liberty"),
    lines={"alpha = 1, printed": f"{_T1}: TL+GOR"},
    notes=("The figure reaches from 0.01 to 10; its values between are not in the text.", _NO_SWAP),
)

FIGURE_6B = Plan(
    PAPER,
    "Figure 6(b)",
    "The dimension of the descriptor",
    "sweep",
    "FPR95 in %, trained on Notre Dame, tested on Liberty, alpha = 1",
    tuple(
        Row(f"{name} d={dim}", changed(recipe, f"network.dim={dim}"), x=float(dim), series=name)
        for name, recipe in (("TL", TRIPLET), ("TL+GOR", GOR_TRIPLET))
        for dim in (32, 64, 128, 256, 512, 1024)
    ),
    "the dimension, with and without GOR",
    PAIRS,
    "dimension d",
    log=True,
    split=("notredame", "liberty"),
    lines={"TL+GOR, d = 128, printed": f"{_T1}: TL+GOR"},
    says=("The text: GOR gains from d = 64 up, not at 32; both lose at very high dimensions.",),
    notes=(_NO_SWAP,),
)

FIGURE_7 = Plan(
    PAPER,
    "Figure 7",
    "Embedding of whole images",
    "images",
    "F1 and NMI of clusters by the dimension, Recall@K, on Stanford Online Products",
    tuple(
        Row(f"{name} d={dim}", changed(recipe, f"network.dim={dim}"), x=float(dim), series=name)
        for name, recipe in (("LSSS", EMBEDDING_IMAGES), ("LSSS+GOR", EMBEDDING_IMAGES_GOR))
        for dim in (64, 128, 256, 512, 1024)
    ),
    "the dimension, with and without GOR",
    ("f1", "nmi", "recall@1", "recall@10", "recall@100", "recall@1000"),
    "dimension d",
    log=True,
    says=("The text: GOR helps especially in high dimensions, d >= 128.",),
    notes=("Which dimensions the figure has is not in the text, except 512 for Recall@K.",),
)

PLANS = (TABLE_1, FIGURE_2, FIGURE_4, FIGURE_5, FIGURE_6A, FIGURE_6B, FIGURE_7)

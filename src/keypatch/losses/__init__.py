"""Losses: measures, mining, one file per term, and how terms add up."""

from keypatch.losses.average_triplet import AverageTriplet
from keypatch.losses.contrastive import Contrastive
from keypatch.losses.described import Described
from keypatch.losses.hybrid import HybridTriplet
from keypatch.losses.measures import MEASURES, Angle, Euclidean, Hybrid, InnerProduct, Measure, Raw, Squared
from keypatch.losses.mining import MINING, Hardest, Mining, Negatives, RandomInBatch, ThirdPatch
from keypatch.losses.norm_difference import NormDifference
from keypatch.losses.ratio import Ratio
from keypatch.losses.second_order import SecondOrder
from keypatch.losses.softmax import SoftmaxTriplet
from keypatch.losses.squared_triplet import SquaredTriplet
from keypatch.losses.terms import AnyTerm, LossTerm, State, StatefulTerm
from keypatch.losses.total import Reduction, Total, total_loss
from keypatch.losses.triplet import Triplet

TERMS: dict[str, type] = {
    term.__name__: term
    for term in (
        Triplet,
        AverageTriplet,
        SoftmaxTriplet,
        Contrastive,
        Ratio,
        SquaredTriplet,
        SecondOrder,
        HybridTriplet,
        NormDifference,
    )
}

__all__ = [
    "MEASURES",
    "MINING",
    "TERMS",
    "Angle",
    "AnyTerm",
    "AverageTriplet",
    "Contrastive",
    "Described",
    "Euclidean",
    "Hardest",
    "Hybrid",
    "HybridTriplet",
    "InnerProduct",
    "LossTerm",
    "Measure",
    "Mining",
    "Negatives",
    "NormDifference",
    "RandomInBatch",
    "Ratio",
    "Raw",
    "Reduction",
    "SecondOrder",
    "SoftmaxTriplet",
    "Squared",
    "SquaredTriplet",
    "State",
    "StatefulTerm",
    "ThirdPatch",
    "Total",
    "Triplet",
    "total_loss",
]

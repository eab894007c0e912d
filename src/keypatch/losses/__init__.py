"""Losses: measures, mining, one file per term, and how terms add up."""

from keypatch.losses.active_gap import ActiveGap
from keypatch.losses.anti_noise import AntiNoise
from keypatch.losses.average_precision import AveragePrecision
from keypatch.losses.average_triplet import AverageTriplet
from keypatch.losses.batch_softmax import BatchSoftmax
from keypatch.losses.contrastive import Contrastive
from keypatch.losses.correlation import Correlation
from keypatch.losses.described import Described, Moment
from keypatch.losses.distillation import Distillation
from keypatch.losses.dynamic_margin import DynamicMargin
from keypatch.losses.gradient_modulation import GradientModulation
from keypatch.losses.hardest_bits import HardestBits
from keypatch.losses.hybrid import HybridTriplet, TwoMeasureTriplet
from keypatch.losses.intermediate import IntermediateSoftmax
from keypatch.losses.lifted import Lifted
from keypatch.losses.measures import (
    MEASURES,
    Angle,
    Euclidean,
    Hybrid,
    InnerProduct,
    Measure,
    Raw,
    Squared,
    SquaredAngle,
)
from keypatch.losses.metric_learning import MetricLearning
from keypatch.losses.mining import Hardest, Mining, Negatives, RandomInBatch, ThirdPatch
from keypatch.losses.mixed_context import MixedContext
from keypatch.losses.module import LossModule
from keypatch.losses.n_pair import NPair, NPairHinge
from keypatch.losses.norm_difference import NormDifference
from keypatch.losses.pair_contrastive import PairContrastive
from keypatch.losses.ratio import Ratio
from keypatch.losses.scale_aware import ScaleAware
from keypatch.losses.second_order import SecondOrder
from keypatch.losses.softmax import SoftmaxTriplet
from keypatch.losses.spread_out import SpreadOut
from keypatch.losses.squared_triplet import SquaredTriplet
from keypatch.losses.terms import AnyTerm, LossTerm, State, StatefulTerm, explains_its_batch
from keypatch.losses.total import Reduction, Total, total_loss
from keypatch.losses.triplet import Triplet
from keypatch.losses.weighting import WEIGHTINGS, InverseDistance, Weighting
from keypatch.parts import table

MINING: dict[str, type] = table(
    "mining", {mining.__name__: mining for mining in (Hardest, RandomInBatch, ThirdPatch, AntiNoise, HardestBits)}
)
_OURS: dict[str, type] = {
    term.__name__: explains_its_batch(term)
    for term in (
        Triplet,
        AverageTriplet,
        SoftmaxTriplet,
        Contrastive,
        Ratio,
        SquaredTriplet,
        SecondOrder,
        HybridTriplet,
        TwoMeasureTriplet,
        NormDifference,
        ScaleAware,
        MixedContext,
        BatchSoftmax,
        Correlation,
        IntermediateSoftmax,
        GradientModulation,
        ActiveGap,
        DynamicMargin,
        SpreadOut,
        PairContrastive,
        NPair,
        NPairHinge,
        Lifted,
        AveragePrecision,
        Distillation,
        MetricLearning,
    )
}
TERMS: dict[str, type] = table("loss", _OURS)

__all__ = [
    "MEASURES",
    "MINING",
    "TERMS",
    "WEIGHTINGS",
    "ActiveGap",
    "Angle",
    "AntiNoise",
    "AnyTerm",
    "AveragePrecision",
    "AverageTriplet",
    "BatchSoftmax",
    "Contrastive",
    "Correlation",
    "Described",
    "Distillation",
    "DynamicMargin",
    "Euclidean",
    "GradientModulation",
    "Hardest",
    "HardestBits",
    "Hybrid",
    "HybridTriplet",
    "InnerProduct",
    "IntermediateSoftmax",
    "InverseDistance",
    "Lifted",
    "LossModule",
    "LossTerm",
    "Measure",
    "MetricLearning",
    "Mining",
    "MixedContext",
    "Moment",
    "NPair",
    "NPairHinge",
    "Negatives",
    "NormDifference",
    "PairContrastive",
    "RandomInBatch",
    "Ratio",
    "Raw",
    "Reduction",
    "ScaleAware",
    "SecondOrder",
    "SoftmaxTriplet",
    "SpreadOut",
    "Squared",
    "SquaredAngle",
    "SquaredTriplet",
    "State",
    "StatefulTerm",
    "ThirdPatch",
    "Total",
    "Triplet",
    "TwoMeasureTriplet",
    "Weighting",
    "total_loss",
]

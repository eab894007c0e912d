"""Pure functions from arrays to scores: no files, no printing, no torch."""

from keypatch.metrics.embedding import Agreement, agreement, nearest_ranks, recall_at
from keypatch.metrics.homography import corner_error
from keypatch.metrics.kmeans import kmeans
from keypatch.metrics.matching import recall_area, share_within
from keypatch.metrics.ranking import rank1
from keypatch.metrics.spread import spread_moments
from keypatch.metrics.verification import (
    FPR_RULES,
    Curve,
    FprRule,
    average_precision,
    fpr95,
    precision_recall_curve,
    roc_auc,
    roc_curve,
)

__all__ = [
    "FPR_RULES",
    "Agreement",
    "Curve",
    "FprRule",
    "agreement",
    "average_precision",
    "corner_error",
    "fpr95",
    "kmeans",
    "nearest_ranks",
    "precision_recall_curve",
    "rank1",
    "recall_area",
    "recall_at",
    "roc_auc",
    "roc_curve",
    "share_within",
    "spread_moments",
]

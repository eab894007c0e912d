"""Pure functions from arrays to scores: no files, no printing, no torch."""

from keypatch.metrics.bootstrap import REPLICATES, bootstrap, bootstrap_mean, draw_counts, interval
from keypatch.metrics.embedding import Agreement, agreement, drawn_agreement, nearest_ranks, recall_at
from keypatch.metrics.homography import corner_error
from keypatch.metrics.kmeans import kmeans
from keypatch.metrics.matching import recall_area, share_within
from keypatch.metrics.poses import DEGREES, angular_error, are_accurate, average_accuracies
from keypatch.metrics.ranking import rank1, rank1_hits
from keypatch.metrics.reference_images import reference_image_precisions
from keypatch.metrics.spread import cosines, spread_moments
from keypatch.metrics.verification import (
    FPR_RULES,
    Accepted,
    Curve,
    FprRule,
    RankedPairs,
    average_precision,
    fpr95,
    precision_recall_curve,
    roc_auc,
    roc_curve,
)

__all__ = [
    "DEGREES",
    "FPR_RULES",
    "REPLICATES",
    "Accepted",
    "Agreement",
    "Curve",
    "FprRule",
    "RankedPairs",
    "agreement",
    "angular_error",
    "are_accurate",
    "average_accuracies",
    "average_precision",
    "bootstrap",
    "bootstrap_mean",
    "corner_error",
    "cosines",
    "draw_counts",
    "drawn_agreement",
    "fpr95",
    "interval",
    "kmeans",
    "nearest_ranks",
    "precision_recall_curve",
    "rank1",
    "rank1_hits",
    "recall_area",
    "recall_at",
    "reference_image_precisions",
    "roc_auc",
    "roc_curve",
    "share_within",
    "spread_moments",
]

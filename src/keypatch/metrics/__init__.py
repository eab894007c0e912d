"""Pure functions from arrays to scores: no files, no printing, no torch."""

from keypatch.metrics.bootstrap import REPLICATES, bootstrap, bootstrap_mean, draw_counts, interval
from keypatch.metrics.embedding import Agreement, agreement, drawn_agreement, kmeans, nearest_ranks, recall_at
from keypatch.metrics.matching import corner_error, epipolar_errors, recall_area, share_within, transfer_errors
from keypatch.metrics.poses import DEGREES, angular_error, are_accurate, average_accuracies
from keypatch.metrics.ranking import rank1, rank1_hits, reference_image_precisions
from keypatch.metrics.verification import (
    FPR_RULES,
    Accepted,
    Curve,
    FprRule,
    RankedPairs,
    average_precision,
    cosines,
    fpr95,
    precision_recall_curve,
    roc_auc,
    roc_curve,
    spread_moments,
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
    "epipolar_errors",
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
    "transfer_errors",
]

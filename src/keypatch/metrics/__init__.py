"""Pure functions from arrays to scores: no files, no printing, no torch."""

from keypatch.metrics.ranking import rank1
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
    "Curve",
    "FprRule",
    "average_precision",
    "fpr95",
    "precision_recall_curve",
    "rank1",
    "roc_auc",
    "roc_curve",
]

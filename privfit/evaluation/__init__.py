"""Evaluation on private records: accuracy, confusion matrices, ROC curves and their area."""

from privfit.evaluation.model_choice import Chosen, choose
from privfit.evaluation.priroc import PriROC
from privfit.evaluation.roc import (
    ConfusionMatrix,
    RocCurve,
    accuracy_score,
    confusion_matrix,
    roc_auc_score,
    roc_curve,
)
from privfit.evaluation.thresholds import best_threshold

__all__ = [
    "Chosen",
    "ConfusionMatrix",
    "PriROC",
    "RocCurve",
    "accuracy_score",
    "best_threshold",
    "choose",
    "confusion_matrix",
    "roc_auc_score",
    "roc_curve",
]

"""Metrics for labels that may be unknown.

Every metric is a plain function of the true labels (1, 0 or NaN for unknown) and of predicted
label sets or scores. Unknown entries take no part; each module says what that means. `METRICS`
and `get_metric` know them by name, `evaluate` scores a model by all of them.
"""

from labelweave.metrics.calibration import ece, ece_macro, ece_of_labels
from labelweave.metrics.catalog import METRICS, Metric, get_metric
from labelweave.metrics.evaluation import evaluate, score_predictions
from labelweave.metrics.extreme import (
    ndcg_at_k,
    precision_at_k,
    propensities,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)
from labelweave.metrics.labelwise import (
    ap_micro,
    ap_of_labels,
    auc_macro,
    auc_micro,
    auc_of_labels,
    mean_average_precision,
)
from labelweave.metrics.overlap import (
    cf1,
    f1_example,
    f1_macro,
    f1_micro,
    jaccard_example,
    jaccard_macro,
    jaccard_micro,
    of1,
    precision_example,
    precision_macro,
    precision_micro,
    recall_example,
    recall_macro,
    recall_micro,
)
from labelweave.metrics.ranking import coverage, lrap, one_error, ranking_loss
from labelweave.metrics.scores import Scores
from labelweave.metrics.sets import (
    hamming_accuracy,
    hamming_loss,
    subset_accuracy,
    zero_one_loss,
)
from labelweave.metrics.sweep import sweep_counts, sweep_f1

__all__ = [
    "METRICS",
    "Metric",
    "Scores",
    "ap_micro",
    "ap_of_labels",
    "auc_macro",
    "auc_micro",
    "auc_of_labels",
    "cf1",
    "coverage",
    "ece",
    "ece_macro",
    "ece_of_labels",
    "evaluate",
    "f1_example",
    "f1_macro",
    "f1_micro",
    "get_metric",
    "hamming_accuracy",
    "hamming_loss",
    "jaccard_example",
    "jaccard_macro",
    "jaccard_micro",
    "lrap",
    "mean_average_precision",
    "ndcg_at_k",
    "of1",
    "one_error",
    "precision_at_k",
    "precision_example",
    "precision_macro",
    "precision_micro",
    "propensities",
    "psndcg_at_k",
    "psp_at_k",
    "ranking_loss",
    "recall_at_k",
    "recall_example",
    "recall_macro",
    "recall_micro",
    "score_predictions",
    "subset_accuracy",
    "sweep_counts",
    "sweep_f1",
    "zero_one_loss",
]

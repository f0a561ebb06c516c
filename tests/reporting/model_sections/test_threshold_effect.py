"""Metrics at each threshold, against the metrics themselves."""

import numpy as np

from labelweave.labels import as_labels
from labelweave.metrics import get_metric
from labelweave.reporting.model_sections.threshold_effect import threshold_effect
from labelweave.thresholds.threshold_search import at_least


def test_threshold_effect_is_the_metric_at_each_threshold(labels, scores):
    thresholds = [0.01, 0.2, 0.35, 0.5, 0.77, 0.99]
    effect = threshold_effect(labels, scores, thresholds)
    known = ~np.isnan(labels.to_numpy())
    for k, threshold in enumerate(thresholds):
        sets = at_least(scores, threshold)
        for name, values in effect.metrics.items():
            np.testing.assert_allclose(
                values[k], get_metric(name)(labels, Y_pred=sets), err_msg=name
            )
        np.testing.assert_allclose(effect.labels_per_row[k], (sets * known).sum() / 60)
    assert effect.true_labels_per_row == (labels.to_numpy() == 1).sum() / 60


def test_threshold_effect_in_single_precision():
    # 0.3 as float32 is above 0.3 as float64: both sides must be rounded alike.
    Y, scores = as_labels([[1.0]]), np.array([[0.3]], dtype=np.float32)
    assert threshold_effect(Y, scores, [0.3]).metrics["subset_accuracy"].tolist() == [1.0]

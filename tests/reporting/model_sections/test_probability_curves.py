"""Precision-recall curves and reliability bins, against scikit-learn and the metrics."""

import numpy as np
from sklearn.metrics import precision_recall_curve

from labelweave.labels import as_labels
from labelweave.metrics import ap_micro, ece
from labelweave.reporting.model_sections.probability_curves import precision_recall, reliability


def cells(Y):
    """Row, column, value of all known entries."""
    return [(i, j, v) for (i, j), v in np.ndenumerate(Y) if not np.isnan(v)]


def test_reliability_bins_are_those_of_the_calibration_error(labels, scores):
    bins = reliability(labels, scores)
    entries = cells(labels.to_numpy())
    for k in range(15):
        low, high = bins.edges[k], bins.edges[k + 1]
        members = [
            (scores[i, j], v)
            for i, j, v in entries
            if low < scores[i, j] <= high or (k == 0 and scores[i, j] == 0)
        ]
        assert bins.entries[k] == len(members)
        if members:
            np.testing.assert_allclose(bins.predicted[k], np.mean([p for p, _ in members]))
            np.testing.assert_allclose(bins.observed[k], np.mean([v for _, v in members]))
    gaps = np.nan_to_num(np.abs(bins.predicted - bins.observed))
    np.testing.assert_allclose(gaps @ bins.entries / bins.entries.sum(), ece(labels, scores))


def test_precision_recall_is_scikit_learns_on_the_known_entries(labels, scores):
    curve = precision_recall(labels, scores)
    known = cells(labels.to_numpy())
    precision, recall, _ = precision_recall_curve(
        [v for *_, v in known], [scores[i, j] for i, j, _ in known]
    )
    # scikit-learn starts at the lowest score and adds the point (recall 0, precision 1).
    np.testing.assert_allclose(curve.precision, precision[-2::-1])
    np.testing.assert_allclose(curve.recall, recall[-2::-1])
    np.testing.assert_allclose(curve.average_precision, ap_micro(labels, scores))


def test_a_long_curve_is_thinned_and_keeps_its_ends():
    rng = np.random.default_rng(0)
    Y, scores = as_labels((rng.random((3000, 1)) < 0.4).astype(float)), rng.random((3000, 1))
    complete = precision_recall(Y, scores, most_points=10**6)
    thin = precision_recall(Y, scores, most_points=100)
    assert len(complete.recall) == 3000
    assert 90 <= len(thin.recall) <= 101
    assert thin.recall[-1] == 1.0
    assert thin.precision[-1] == complete.precision[-1]
    assert thin.average_precision == complete.average_precision
    points = set(zip(complete.recall, complete.precision, strict=True))
    assert set(zip(thin.recall, thin.precision, strict=True)) <= points


def test_no_curve_without_a_positive():
    assert precision_recall(as_labels(np.zeros((4, 2))), np.full((4, 2), 0.3)) is None

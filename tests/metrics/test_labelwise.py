"""Average precision and AUC of labels."""

import numpy as np
import pytest
from sklearn import metrics as sk

from labelweave.metrics import (
    _inputs,
    ap_micro,
    ap_of_labels,
    auc_macro,
    auc_micro,
    auc_of_labels,
    mean_average_precision,
)


def slow(function, Y_true, Y_score, weight=None):
    """scikit-learn, label by label, on the known rows; nan where it is undefined."""
    values = []
    for truth, scores in zip(Y_true.T, Y_score.T, strict=True):
        known = ~np.isnan(truth)
        truth = truth[known]
        lacks_one = not (truth == 1).any() or (
            function is sk.roc_auc_score and not (truth == 0).any()
        )
        w = None if weight is None else weight[known]
        values.append(np.nan if lacks_one else function(truth, scores[known], sample_weight=w))
    return np.array(values)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", ["problem", "partial"])
def test_as_scikit_learn_label_by_label(request, labels, weighted, monkeypatch):
    monkeypatch.setattr(_inputs, "_CHUNK_ENTRIES", 150)  # several blocks of labels
    Y_true, _, Y_score = request.getfixturevalue(labels)
    w = np.random.default_rng(2).random(len(Y_true)) if weighted else None
    ap = slow(sk.average_precision_score, Y_true, Y_score, w)
    auc = slow(sk.roc_auc_score, Y_true, Y_score, w)
    assert np.isnan(ap).any()
    np.testing.assert_allclose(ap_of_labels(Y_true, Y_score, sample_weight=w), ap)
    np.testing.assert_allclose(auc_of_labels(Y_true, Y_score, sample_weight=w), auc)
    assert mean_average_precision(Y_true, Y_score, sample_weight=w) == pytest.approx(np.nanmean(ap))
    assert auc_macro(Y_true, Y_score, sample_weight=w) == pytest.approx(np.nanmean(auc))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("labels", ["problem", "partial"])
def test_micro_is_one_ranking_of_the_known_entries(request, labels, weighted):
    Y_true, _, Y_score = request.getfixturevalue(labels)
    w = np.random.default_rng(2).random(len(Y_true)) if weighted else None
    known = ~np.isnan(Y_true)
    weights = None if w is None else np.broadcast_to(w[:, None], Y_true.shape)[known]
    flat = Y_true[known], Y_score[known]
    assert ap_micro(Y_true, Y_score, sample_weight=w) == pytest.approx(
        sk.average_precision_score(*flat, sample_weight=weights)
    )
    assert auc_micro(Y_true, Y_score, sample_weight=w) == pytest.approx(
        sk.roc_auc_score(*flat, sample_weight=weights)
    )


def test_undefined_is_nan():
    Y_score = np.ones((3, 2))
    assert np.isnan(mean_average_precision(np.zeros((3, 2)), Y_score))
    assert np.isnan(ap_micro(np.zeros((3, 2)), Y_score))
    assert np.isnan(auc_macro(np.ones((3, 2)), Y_score))
    assert np.isnan(auc_micro(np.ones((3, 2)), Y_score))

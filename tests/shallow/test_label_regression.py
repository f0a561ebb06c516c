"""Labels regressed on other labels and scores, against plain least squares."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.shallow import label_regression as module
from labelweave.shallow.label_regression import (
    label_regression,
    regression_on_labels,
    rows_share_labels,
)


def test_regression_is_a_ridge_without_the_label_itself():
    rng = np.random.default_rng(0)
    positive = rng.random((60, 4)) < 0.4
    logits = rng.normal(size=(60, 4))
    fold = np.arange(60) % 2
    estimates = label_regression(positive, logits, fold)
    side = (logits - logits.mean(axis=0)) / logits.std(axis=0)
    for number in (0, 1):
        held = fold == number
        mean = positive[~held].mean(axis=0)
        for j in range(4):
            others = np.delete(positive - mean, j, axis=1)
            Z = np.hstack([others, side])
            penalty = np.diag(np.r_[np.full(3, 20.0), np.full(4, 100.0)])
            target = positive[~held, j] - mean[j]
            w = np.linalg.solve(Z[~held].T @ Z[~held] + penalty, Z[~held].T @ target)
            np.testing.assert_allclose(
                estimates[held, j], Z[held] @ w + mean[j], rtol=1e-4, atol=1e-6
            )


def test_regression_on_the_most_frequent_labels_only(monkeypatch):
    rng = np.random.default_rng(0)
    positive = rng.random((60, 4)) < [0.5, 0.1, 0.6, 0.2]
    logits = rng.normal(size=(60, 4))
    fold = np.arange(60) % 2
    monkeypatch.setattr(module, "_MOST_LABELS", 2)
    estimates = label_regression(positive, logits, fold)
    side = ((logits - logits.mean(axis=0)) / logits.std(axis=0))[:, [0, 2]]
    rest, mean = fold == 1, positive[fold == 1].mean(axis=0)
    Z = np.hstack([(positive - mean)[:, [0, 2]], side])
    penalty = np.diag([20.0, 20.0, 100.0, 100.0])
    w = np.linalg.solve(Z[rest].T @ Z[rest] + penalty, Z[rest].T @ (positive[rest, 1] - mean[1]))
    np.testing.assert_allclose(estimates[~rest, 1], Z[~rest] @ w + mean[1], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("most", [2, 10])
def test_on_labels_alone_it_is_the_same_regression(monkeypatch, most):
    """Scores that are all alike say nothing, and leave the labels."""
    monkeypatch.setattr(module, "_MOST_LABELS", most)
    positive = np.random.default_rng(0).random((60, 4)) < [0.5, 0.1, 0.6, 0.2]
    fold = np.arange(60) % 2
    expected = label_regression(positive, np.zeros((60, 4)), fold)
    for number in (0, 1):
        estimates = regression_on_labels(sp.csr_array(positive), fold != number)
        np.testing.assert_allclose(estimates[fold == number], expected[fold == number], atol=1e-5)


def test_rows_with_two_labels_must_not_be_rare():
    assert rows_share_labels(np.array([2] * 10 + [1] * 90 + [0] * 900))
    assert not rows_share_labels(np.array([2] * 9 + [1] * 91))
    assert not rows_share_labels(np.array([2] * 4))

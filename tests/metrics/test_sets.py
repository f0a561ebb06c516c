"""Subset accuracy and Hamming loss."""

import numpy as np
import pytest
from sklearn import metrics as sk

from labelweave.metrics import hamming_accuracy, hamming_loss, subset_accuracy, zero_one_loss


@pytest.mark.parametrize("weighted", [False, True])
def test_as_scikit_learn(problem, weighted):
    Y_true, Y_pred, _ = problem
    w = np.random.default_rng(2).random(len(Y_true)) if weighted else None
    assert subset_accuracy(Y_true, Y_pred, sample_weight=w) == pytest.approx(
        sk.accuracy_score(Y_true, Y_pred, sample_weight=w)
    )
    assert zero_one_loss(Y_true, Y_pred, sample_weight=w) == pytest.approx(
        sk.zero_one_loss(Y_true, Y_pred, sample_weight=w)
    )
    expected = sk.hamming_loss(Y_true, Y_pred, sample_weight=w)
    assert hamming_loss(Y_true, Y_pred, sample_weight=w) == pytest.approx(expected)
    assert hamming_accuracy(Y_true, Y_pred, sample_weight=w) == pytest.approx(1 - expected)


def test_unknown_entries_take_no_part(partial):
    Y_true, Y_pred, _ = partial
    right, rows, wrong, entries = 0, 0, 0, 0
    for truth, predicted in zip(Y_true, Y_pred, strict=True):
        known = ~np.isnan(truth)
        if known.any():
            rows += 1
            right += bool((truth[known] == predicted[known]).all())
            wrong += (truth[known] != predicted[known]).sum()
            entries += known.sum()
    assert subset_accuracy(Y_true, Y_pred) == pytest.approx(right / rows)
    assert hamming_loss(Y_true, Y_pred) == pytest.approx(wrong / entries)


def test_undefined_when_only_unknown_rows_have_weight():
    Y_true, Y_pred = [[1, 0], [np.nan, np.nan]], [[1, 0], [1, 1]]
    assert np.isnan(subset_accuracy(Y_true, Y_pred, sample_weight=[0, 1]))
    assert np.isnan(hamming_loss(Y_true, Y_pred, sample_weight=[0, 1]))

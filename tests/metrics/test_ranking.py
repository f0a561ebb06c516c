"""Metrics of each row's ranking of its labels."""

import numpy as np
import pytest
from sklearn import metrics as sk

from labelweave.exceptions import InputError
from labelweave.metrics import _inputs, coverage, lrap, one_error, ranking_loss

THEIRS = {
    ranking_loss: sk.label_ranking_loss,
    lrap: sk.label_ranking_average_precision_score,
    coverage: sk.coverage_error,
}


def by_hand(metric, truth, scores):
    """One fully known row, written out; nan where there is nothing to put in order."""
    positive, negative = np.flatnonzero(truth == 1), np.flatnonzero(truth == 0)
    if metric is one_error:
        top = np.flatnonzero(scores == scores.max())
        return np.mean([truth[j] == 0 for j in top]) if len(positive) else np.nan
    if metric is coverage:
        return (scores >= scores[positive].min()).sum() if len(positive) else np.nan
    if metric is ranking_loss:
        pairs = [scores[p] <= scores[n] for p in positive for n in negative]
        return np.mean(pairs) if pairs else np.nan
    shares = [truth[scores >= scores[p]].mean() for p in positive]
    return np.mean(shares) if shares else np.nan


@pytest.mark.parametrize("metric", THEIRS)
@pytest.mark.parametrize("weighted", [False, True])
def test_as_scikit_learn(problem, metric, weighted):
    Y_true, _, Y_score = problem
    w = np.random.default_rng(2).random(len(Y_true)) if weighted else None
    expected = THEIRS[metric](Y_true, Y_score, sample_weight=w)
    assert metric(Y_true, Y_score, sample_weight=w) == pytest.approx(expected)


@pytest.mark.parametrize("metric", [*THEIRS, one_error])
def test_unknown_labels_are_as_if_they_were_not_there(partial, metric, monkeypatch):
    monkeypatch.setattr(_inputs, "_CHUNK_ENTRIES", 40)  # several blocks of rows
    Y_true, _, Y_score = partial
    each = []
    for truth, scores in zip(Y_true, Y_score, strict=True):
        known = ~np.isnan(truth)
        if known.any():
            each.append(by_hand(metric, truth[known], scores[known]))
    skipped = np.nanmean(each)
    if metric is one_error:
        assert metric(Y_true, Y_score) == pytest.approx(skipped)
        return
    assert metric(Y_true, Y_score, empty="skip") == pytest.approx(skipped)
    perfect = 1 if metric is lrap else 0
    counted = np.mean(np.where(np.isnan(each), perfect, each))
    assert metric(Y_true, Y_score) == pytest.approx(counted)


def test_a_tie_at_the_top_counts_in_part():
    assert one_error([[1, 0, 0]], [[0.5, 0.5, 0.1]]) == 0.5


def test_undefined_without_a_positive():
    Y_true, Y_score = np.zeros((2, 3)), np.ones((2, 3))
    assert np.isnan(one_error(Y_true, Y_score))
    assert np.isnan(ranking_loss(Y_true, Y_score, empty="skip"))
    assert ranking_loss(Y_true, Y_score) == 0


def test_wrong_word_for_empty():
    with pytest.raises(InputError, match="'count' or 'skip'"):
        ranking_loss([[1, 0]], [[1, 0]], empty="drop")

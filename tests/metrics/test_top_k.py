"""Metrics of the first k labels."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import ndcg_score

from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.metrics import (
    _inputs,
    ndcg_at_k,
    precision_at_k,
    propensities,
    psndcg_at_k,
    psp_at_k,
    recall_at_k,
)


def ranked(truth, scores, k):
    """The first k known labels of a row: number of each, best first."""
    known = [j for j in range(len(truth)) if not np.isnan(truth[j])]
    return sorted(known, key=lambda j: (-scores[j], j))[:k]


def slow(Y_true, Y_score, k, worth):
    """All metrics at k, row by row."""
    precision, recall, ndcg, gained, best, gained_dcg, best_dcg = ([] for _ in range(7))
    for truth, scores in zip(Y_true, Y_score, strict=True):
        if np.isnan(truth).all():
            continue
        top = ranked(truth, scores, k)
        hits = [truth[j] == 1 for j in top]
        precision.append(sum(hits) / min(k, (~np.isnan(truth)).sum()))
        positive = np.flatnonzero(truth == 1)
        if not len(positive):
            continue
        recall.append(sum(hits) / len(positive))
        ideal = sum(1 / np.log2(r + 2) for r in range(min(k, len(positive))))
        ndcg.append(sum(h / np.log2(r + 2) for r, h in enumerate(hits)) / ideal)
        gains = [h * worth[j] for h, j in zip(hits, top, strict=True)]
        largest = sorted(worth[positive], reverse=True)[:k]
        gained.append(sum(gains))
        best.append(sum(largest))
        gained_dcg.append(sum(g / np.log2(r + 2) for r, g in enumerate(gains)) / ideal)
        best_dcg.append(sum(g / np.log2(r + 2) for r, g in enumerate(largest)) / ideal)
    return (
        np.mean(precision),
        np.mean(recall),
        np.mean(ndcg),
        sum(gained) / sum(best),
        sum(gained_dcg) / sum(best_dcg),
    )


def fast(Y_true, Y_score, k, p, sample_weight=None):
    arguments, weights = (Y_true, Y_score, k), {"sample_weight": sample_weight}
    return (
        precision_at_k(*arguments, **weights),
        recall_at_k(*arguments, **weights),
        ndcg_at_k(*arguments, **weights),
        psp_at_k(*arguments, propensities=p, **weights),
        psndcg_at_k(*arguments, propensities=p, **weights),
    )


@pytest.mark.parametrize("k", [1, 3, 5, 20])
@pytest.mark.parametrize("labels", ["problem", "partial"])
def test_as_the_slow_way(request, labels, k, monkeypatch):
    monkeypatch.setattr(_inputs, "_CHUNK_ENTRIES", 100)
    Y_true, _, Y_score = request.getfixturevalue(labels)
    p = propensities(Y_true)
    expected = slow(Y_true, Y_score, k, 1 / p)
    assert fast(Y_true, Y_score, k, p) == pytest.approx(expected)
    # A sparse matrix that stores all scores is the same matrix.
    stored = sp.csr_array(Y_score + 1)
    assert fast(Y_true, stored, k, p) == pytest.approx(expected)


@pytest.mark.parametrize("labels", ["problem", "partial"])
@pytest.mark.parametrize("absent", ["negative", "unknown"])
@pytest.mark.parametrize("sparse_scores", [False, True])
def test_sparse_labels_are_the_same_labels(request, labels, absent, sparse_scores):
    Y_true, _, Y_score = request.getfixturevalue(labels)
    stored = sp.csr_array(np.where(Y_true == 0, 0.0, Y_true))
    if absent == "unknown":
        stored = sp.coo_array(np.where(np.isnan(Y_true), 0.0, Y_true + 1)).tocsr()
        stored.data -= 1  # zeros are stored, unknown entries are not
    truth = as_labels(stored, absent=absent)
    p = propensities(Y_true)
    scores = sp.csr_array(Y_score + 1) if sparse_scores else Y_score
    assert fast(truth, scores, 3, p) == pytest.approx(fast(Y_true, Y_score, 3, p))


def test_labels_without_a_stored_score_are_never_among_the_first():
    Y_true = np.array([[1, 1, 0, 0], [0, 1, 0, 0]])
    best = sp.csr_array(np.array([[0.0, -2.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.0]]))
    best.eliminate_zeros()
    assert precision_at_k(Y_true, best, 2) == pytest.approx((1 / 2 + 0) / 2)
    assert recall_at_k(Y_true, best, 2) == pytest.approx((1 / 2 + 0) / 2)


def test_ndcg_as_scikit_learn():
    rng = np.random.default_rng(0)
    Y_true, Y_score = (rng.random((30, 8)) < 0.4).astype(int), rng.random((30, 8))
    Y_true[:, 0] = 1  # scikit-learn counts rows without a positive as 0
    assert ndcg_at_k(Y_true, Y_score, 4) == pytest.approx(ndcg_score(Y_true, Y_score, k=4))


def test_weights(problem):
    Y_true, _, Y_score = problem
    w = np.arange(len(Y_true))
    p = propensities(Y_true)
    repeated = [np.repeat(part, w, axis=0) for part in (Y_true, Y_score)]
    assert fast(Y_true, Y_score, 3, p, w) == pytest.approx(fast(*repeated, 3, p))


def test_propensities_are_the_published_formula():
    rng = np.random.default_rng(0)
    Y = rng.random((200, 5)) < [0.5, 0.2, 0.1, 0.02, 0.0]
    n = Y.sum(axis=0)
    c = (np.log(200) - 1) * 2.5**0.55
    expected = 1 / (1 + c * np.exp(-0.55 * np.log(n + 1.5)))
    assert propensities(Y) == pytest.approx(expected)
    assert propensities(sp.csr_array(Y)) == pytest.approx(expected)
    c = (np.log(200) - 1) * 1.4**0.5
    assert propensities(Y, a=0.5, b=0.4) == pytest.approx(1 / (1 + c / np.sqrt(n + 0.4)))
    assert (propensities(Y[:2]) == 1).all()


def test_a_perfect_ranking_scores_1(problem):
    Y_true, _, _ = problem
    p = propensities(Y_true)
    by_worth = Y_true / p
    assert psp_at_k(Y_true, by_worth, 3, propensities=p) == pytest.approx(1)
    assert psndcg_at_k(Y_true, by_worth, 3, propensities=p) == pytest.approx(1)


def test_nothing_positive_is_undefined():
    Y_true, Y_score = np.zeros((2, 3)), np.ones((2, 3))
    assert precision_at_k(Y_true, Y_score, 1) == 0
    assert np.isnan(recall_at_k(Y_true, Y_score, 1))
    assert np.isnan(ndcg_at_k(Y_true, Y_score, 1))
    assert np.isnan(psp_at_k(Y_true, Y_score, 1, propensities=np.ones(3)))


@pytest.mark.parametrize("k", [0, -1, 1.5, True, "3"])
def test_wrong_k(k):
    with pytest.raises(InputError, match="k must be a whole number"):
        precision_at_k([[1, 0]], [[1, 0]], k)


@pytest.mark.parametrize("p", [[0.5], [0.5, 0.0], [0.5, 1.5], [0.5, np.nan]])
def test_wrong_propensities(p):
    with pytest.raises(InputError, match="propensities"):
        psp_at_k([[1, 0]], [[1, 0]], 1, propensities=p)

"""Estimates from the features: against loops, and independent of the entry itself."""

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from audit_data import make_hidden

import labelweave as lw
from labelweave.auditing import feature_estimates as module
from labelweave.auditing.feature_estimates import (
    feature_estimates,
    neighbour_votes,
    numeric_features,
    reduced_rows,
)
from labelweave.shallow.label_regression import regression_on_rows


def unit_rows(n, d, seed=0):
    rows = np.random.default_rng(seed).normal(size=(n, d)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_votes_against_a_loop(monkeypatch):
    monkeypatch.setattr(module, "_NEIGHBOURS", 5)
    rows = unit_rows(40, 4)
    positive = np.random.default_rng(1).random((40, 3)) < 0.4
    result = neighbour_votes(rows, positive)
    for i in range(40):
        others = sorted((j for j in range(40) if j != i), key=lambda j: -float(rows[i] @ rows[j]))
        weights = [max(float(rows[i] @ rows[j]), 0.0) ** 4 for j in others[:5]]
        votes = [w * positive[j] for w, j in zip(weights, others[:5], strict=True)]
        np.testing.assert_allclose(result[i], sum(votes) / (sum(weights) + 1e-3), atol=1e-5)


def test_only_some_of_very_many_rows_vote_and_never_for_themselves(monkeypatch):
    monkeypatch.setattr(module, "_MOST_VOTERS", 10)
    rows = unit_rows(30, 4)
    is_own_row = np.eye(30, dtype=bool)  # column j: the weight of row j
    weights = neighbour_votes(rows, is_own_row)
    assert (weights.sum(axis=0) > 0).sum() == 10
    np.testing.assert_array_equal(np.diag(weights), 0)
    np.testing.assert_array_equal(weights, neighbour_votes(rows, is_own_row))


def test_a_single_row_has_no_neighbours():
    np.testing.assert_array_equal(neighbour_votes(unit_rows(1, 3), np.ones((1, 2), bool)), 0)


def test_regression_on_rows_is_a_ridge_without_the_label_itself():
    rng = np.random.default_rng(0)
    positive, rows, fold = rng.random((60, 4)) < 0.4, unit_rows(60, 7), np.arange(60) % 2
    result = regression_on_rows(positive, rows, fold)
    side = rows - rows.mean(axis=0)
    for number in (0, 1):
        rest = fold != number
        mean = positive[rest].mean(axis=0)
        for j in range(4):
            Z = np.hstack([np.delete(positive - mean, j, axis=1), side])
            penalty = np.diag(np.r_[np.full(3, 20.0), np.full(7, 5.0)])
            w = np.linalg.solve(
                Z[rest].T @ Z[rest] + penalty, Z[rest].T @ (positive[rest, j] - mean[j])
            )
            np.testing.assert_allclose(result[~rest, j], Z[~rest] @ w + mean[j], atol=1e-5)


def test_dense_columns_count_alike_whatever_their_unit():
    X = np.random.default_rng(0).normal(size=(20, 3))
    result = reduced_rows(X * [1.0, 1000.0, 0.001] + [0.0, 7.0, 0.0])
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    expected = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    np.testing.assert_allclose(result, expected, atol=1e-5)


def words(n=25, p=400, used=30, seed=0):
    """Sparse counts in many columns, of which a few are in use: their rank is low."""
    counts = np.zeros((n, p))
    counts[:, :used] = np.random.default_rng(seed).poisson(0.4, (n, used))
    counts[:, 0] = 1
    return counts


def test_reduced_words_keep_their_cosines():
    counts = words()
    n = len(counts)
    idf = [math.log((1 + n) / (1 + np.count_nonzero(column))) + 1 for column in counts.T]
    weighted = counts * idf
    weighted /= np.linalg.norm(weighted, axis=1, keepdims=True)
    result = reduced_rows(sp.csr_array(counts))
    assert result.shape[1] <= 300
    np.testing.assert_allclose(result @ result.T, weighted @ weighted.T, atol=1e-4)


def test_sparse_stays_sparse(monkeypatch):
    X = sp.csr_array(words())

    def refuse(*_, **__):
        raise AssertionError("made dense")

    for kind in (sp.csr_array, sp.csr_matrix, sp.csc_array, sp.csc_matrix):
        for name in ("toarray", "todense"):
            monkeypatch.setattr(kind, name, refuse)
    assert reduced_rows(X).shape[0] == 25


def test_of_very_many_columns_the_most_frequent_are_kept(monkeypatch):
    monkeypatch.setattr(module, "_MOST_COLUMNS", 8)
    counts = words(used=12)
    best = np.sort(np.argsort(-(counts > 0).sum(axis=0), kind="stable")[:8])
    np.testing.assert_allclose(
        reduced_rows(sp.csr_array(counts)), reduced_rows(sp.csr_array(counts[:, best])), atol=1e-6
    )


@pytest.mark.filterwarnings("error")
def test_rows_without_any_feature_get_no_votes():
    rows = reduced_rows(sp.csr_array((6, 400)))
    np.testing.assert_array_equal(neighbour_votes(rows, np.ones((6, 2), bool)), 0)


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_no_estimate_uses_the_annotation_of_the_entry(make):
    data, _ = make_hidden(200)
    X, fold = make(np.abs(data.X)), np.arange(200) % 5
    positive = data.Y.to_numpy() == 1
    for entry in ((0, 0), (17, 3), (199, 5)):
        flipped = positive.copy()
        flipped[entry] ^= True
        pairs = zip(
            feature_estimates(X, positive, fold), feature_estimates(X, flipped, fold), strict=True
        )
        for one, other in pairs:
            assert one.shape == positive.shape
            np.testing.assert_allclose(one[entry], other[entry], rtol=1e-6)
            assert not np.array_equal(one, other)  # other entries do depend on it


def test_features_without_numbers_are_ignored():
    Y = np.eye(3)
    assert numeric_features(lw.Dataset(np.array([[1.0], [np.nan], [2.0]]), Y)) is None
    assert numeric_features(lw.Dataset(np.zeros((3, 2, 2, 3)), Y)) is None
    assert sp.issparse(numeric_features(lw.Dataset(sp.csr_array(np.eye(3)), Y)))
    texts = numeric_features(lw.Dataset(["the sea", "a sun", "the sun"], Y))
    assert sp.issparse(texts)
    assert texts.shape[0] == 3


def test_scores_of_rows_without_numbers_are_enough():
    data, _ = make_hidden(100)
    scores = np.random.default_rng(0).random(data.Y.shape)
    blank = lw.Dataset(np.full((100, 2), np.nan), data.Y)
    assert len(lw.audit(blank, scores=scores, top=5)) == 5
    empty = lw.Dataset([""] * 100, data.Y)
    assert len(lw.audit(empty, scores=scores, top=5)) == 5


def test_features_of_mixed_tables():
    frame = pd.DataFrame({"price": [1.0, None, 3.0], "brand": ["a", "b", "a"]})
    for rows in (frame, lw.Table(frame)):
        assert numeric_features(lw.Dataset(rows, np.eye(3))).shape == (3, 4)
    blank = pd.DataFrame({"price": [None, None, None]})
    assert numeric_features(lw.Dataset(blank, np.eye(3))) is None

"""What must hold of every metric, whatever the labels."""

import hypothesis.strategies as st
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from labelweave.labels import as_labels
from labelweave.metrics import METRICS, get_metric

NAMES = [name.replace("@k", "@2") for name in METRICS]
# Ties of the first k labels go to the first column, so the order of labels matters there.
AT_K = [name for name in NAMES if "@" in name]
SCORES = [name for name in NAMES if get_metric(name).needs == "score"]


@st.composite
def problems(draw, distinct=False):
    shape = draw(st.tuples(st.integers(1, 7), st.integers(1, 5)))
    Y_true = draw(arrays(float, shape, elements=st.sampled_from([0.0, 1.0, np.nan])))
    if np.isnan(Y_true).all():
        Y_true[0, 0] = 1
    if distinct:
        n = Y_true.size
        scores = (np.array(draw(st.permutations(range(n)))) / n).reshape(shape)
    else:
        scores = draw(arrays(float, shape, elements=st.sampled_from([0.0, 0.2, 0.5, 0.7, 1.0])))
    return Y_true, scores


def value(name, Y_true, scores, propensities=None):
    metric = get_metric(name)
    extra = {}
    if metric.needs_propensities:
        n_labels = scores.shape[1]
        extra["propensities"] = (
            np.linspace(0.2, 1, n_labels) if propensities is None else propensities
        )
    return metric(Y_true, Y_score=scores, Y_pred=scores >= 0.5, **extra)


def same(a, b, name):
    np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12, err_msg=name)


@given(problem=problems(), seed=st.integers(0, 99))
@settings(max_examples=25)
def test_order_of_rows_does_not_matter(problem, seed):
    Y_true, scores = problem
    for name in NAMES:
        order = np.random.default_rng(seed).permutation(len(Y_true))
        same(value(name, Y_true, scores), value(name, Y_true[order], scores[order]), name)


@given(tied=problems(), distinct=problems(distinct=True), seed=st.integers(0, 99))
@settings(max_examples=25)
def test_order_of_labels_does_not_matter(tied, distinct, seed):
    for name in NAMES:
        Y_true, scores = distinct if name in AT_K else tied
        order = np.random.default_rng(seed).permutation(Y_true.shape[1])
        p = np.linspace(0.2, 1, Y_true.shape[1])
        same(
            value(name, Y_true, scores, p),
            value(name, Y_true[:, order], scores[:, order], p[order]),
            name,
        )


@given(problem=problems(), filler=st.sampled_from([0.0, 0.3, 1.0]))
@settings(max_examples=25)
def test_predictions_of_unknown_entries_do_not_matter(problem, filler):
    Y_true, scores = problem
    for name in NAMES:
        changed = np.where(np.isnan(Y_true), filler, scores)
        same(value(name, Y_true, scores), value(name, Y_true, changed), name)


@given(problem=problems())
@settings(max_examples=25)
def test_rows_and_labels_without_a_known_entry_do_not_matter(problem):
    Y_true, scores = problem
    for name in NAMES:
        rows = ~np.isnan(Y_true).all(axis=1)
        columns = ~np.isnan(Y_true).all(axis=0)
        p = np.linspace(0.2, 1, Y_true.shape[1])
        fewer = Y_true[rows][:, columns], scores[rows][:, columns]
        same(value(name, Y_true, scores, p), value(name, *fewer, p[columns]), name)


@given(problem=problems())
@settings(max_examples=25)
def test_sparse_labels_are_the_same_labels(problem):
    Y_true, scores = problem
    for name in NAMES:
        expected = value(name, Y_true, scores)
        same(value(name, sp.csr_array(Y_true), scores), expected, name)
        stored = sp.csr_array(np.where(np.isnan(Y_true), 0.0, Y_true + 1))
        stored.data -= 1  # unknown entries are those that are not stored
        same(value(name, as_labels(stored, absent="unknown"), scores), expected, name)


@given(problem=problems())
@settings(max_examples=25)
def test_sparse_predictions_are_the_same_predictions(problem):
    Y_true, scores = problem
    for name in [name for name in NAMES if name not in SCORES]:
        metric, pred = get_metric(name), scores >= 0.5
        expected = metric(Y_true, Y_pred=pred)
        same(metric(Y_true, Y_pred=sp.csr_array(pred)), expected, name)
        same(metric(sp.csr_array(Y_true), Y_pred=sp.csr_array(pred)), expected, name)


@given(problem=problems())
@settings(max_examples=25)
def test_range(problem):
    for name in NAMES:
        result = value(name, *problem)
        largest = problem[0].shape[1] if name == "coverage" else 1
        assert np.isnan(result) or -1e-12 <= result <= largest + 1e-12


@given(problem=problems())
@settings(max_examples=25)
def test_only_the_order_of_scores_matters(problem):
    Y_true, scores = problem
    for name in [n for n in SCORES if not n.startswith("ece")]:
        same(value(name, Y_true, scores), value(name, Y_true, np.exp(3 * scores) - 7), name)


@given(problem=problems())
@settings(max_examples=25)
def test_a_perfect_prediction_has_the_best_score(problem):
    Y_true, _ = problem
    # Every row and label has a positive, so no convention about empty ones comes in.
    Y_true = np.vstack([np.c_[Y_true, np.ones(len(Y_true))], np.ones(Y_true.shape[1] + 1)])
    scores = np.nan_to_num(Y_true)
    p = np.ones(Y_true.shape[1])  # equal worth, so that the order among positives is free
    bounded_by_the_labels = ("coverage", "precision@2", "recall@2")
    for name in NAMES:
        if name not in bounded_by_the_labels:
            result = value(name, Y_true, scores, p)
            best = 1.0 if get_metric(name).greater_is_better else 0.0
            assert np.isnan(result) or result == pytest.approx(best), name

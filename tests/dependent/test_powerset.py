"""The label powerset against a sum over label sets, one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC

from labelweave.dependent.br import BinaryRelevance
from labelweave.dependent.powerset import LabelPowerset, fit_label_sets
from labelweave.labels import as_labels


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    Y = (X @ rng.normal(size=(5, 3)) + rng.normal(size=(200, 3)) > 0.5).astype(float)
    return X, Y, rng.normal(size=(30, 5))


def sum_over_sets(estimator, X, Y, Q, known=None):
    sets = sorted({tuple(row) for row in Y})
    of_sets = estimator.fit(X, [sets.index(tuple(row)) for row in Y]).predict_proba(Q)
    result = np.zeros((len(Q), Y.shape[1]))
    for i in range(len(Q)):
        agrees = [
            known is None or all(np.isnan(k) or k == y for k, y in zip(known[i], one, strict=True))
            for one in sets
        ]
        if not any(agrees):
            agrees = [True] * len(sets)
        total = sum(p for p, ok in zip(of_sets[i], agrees, strict=True) if ok)
        for p, one, ok in zip(of_sets[i], sets, agrees, strict=True):
            if ok:
                result[i] += p / total * np.array(one)
    return result


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_equals_the_sum_over_sets(data, form):
    X, Y, Q = data
    expected = sum_over_sets(LogisticRegression(max_iter=10_000), X, Y, Q)
    probabilities = LabelPowerset().fit(form(X), form(Y)).predict_proba(form(Q))
    np.testing.assert_allclose(probabilities, expected, atol=2e-3)
    probabilities = LabelPowerset(GaussianNB()).fit(X, Y).predict_proba(Q)
    np.testing.assert_allclose(probabilities, sum_over_sets(GaussianNB(), X, Y, Q), atol=1e-7)


def test_known_labels_leave_the_sets_that_agree(data):
    X, Y, Q = data
    keep = ~((Y[:, 0] == 1) & (Y[:, 1] == 1))  # no set holds both
    X, Y = X[keep], Y[keep]
    known = np.full((len(Q), 3), np.nan)
    known[:20, 0] = 1
    known[10:, 1] = 1
    expected = sum_over_sets(GaussianNB(), X, Y, Q, known)
    probabilities = LabelPowerset(GaussianNB()).fit(X, Y).predict_proba(Q, known=known)
    np.testing.assert_allclose(probabilities, np.where(np.isnan(known), expected, known), atol=1e-7)


def test_unknown_entries_are_completed_by_binary_relevance(data):
    X, Y, Q = data
    Y[np.random.default_rng(1).random(Y.shape) < 0.3] = np.nan
    filled = BinaryRelevance(GaussianNB()).fit(X, Y).predict(X)
    complete = np.where(np.isnan(Y), filled, Y)
    probabilities = LabelPowerset(GaussianNB()).fit(X, Y).predict_proba(Q)
    np.testing.assert_allclose(
        probabilities, sum_over_sets(GaussianNB(), X, complete, Q), atol=1e-7
    )


def test_rare_sets_join_the_nearest():
    Y = as_labels(np.array([[1, 1, 0]] * 5 + [[0, 0, 0]] * 4 + [[1, 1, 1], [0, 0, 1], [1, 0, 1]]))
    X = np.arange(12.0)[:, None]
    estimator, sets = fit_label_sets(GaussianNB(), X, Y, max_sets=2, weight=None)
    np.testing.assert_array_equal(sets.toarray(), [[1, 1, 0], [0, 0, 0]])
    # [1, 0, 1] differs from both in two labels: the more frequent takes it.
    np.testing.assert_array_equal(estimator.class_count_, [7, 5])


def test_decision_values_become_a_softmax(data):
    X, Y, Q = data
    model = LabelPowerset(LinearSVC(random_state=0)).fit(X, Y)
    decision = model.estimator_.decision_function(Q)
    weight = np.exp(decision - decision.max(axis=1, keepdims=True))
    weight /= weight.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(Q), weight @ model.sets_.toarray(), atol=1e-6)

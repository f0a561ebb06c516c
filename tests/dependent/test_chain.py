"""Classifier chains against scikit-learn's and against a chain walked by hand."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import ClassifierChain as ScikitLearnsChain
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeClassifier

import labelweave as lw
from labelweave.dependent.chain import ClassifierChain
from labelweave.exceptions import InputError
from labelweave.labels import as_labels


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    Y = (X @ rng.normal(size=(6, 4)) + rng.normal(size=(150, 4)) > 0.5).astype(float)
    Y[:, 3] = np.where(rng.random(150) < 0.8, Y[:, 0], Y[:, 3])
    return X, Y, rng.normal(size=(40, 6))


@pytest.mark.parametrize("estimator", [LogisticRegression(C=0.5), GaussianNB()])
@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1]])
@pytest.mark.parametrize("pass_on", ["labels", "probabilities"])
def test_equals_scikit_learns_chain(data, estimator, order, pass_on):
    X, Y, Q = data
    method = {"labels": "predict", "probabilities": "predict_proba"}[pass_on]
    peer = ScikitLearnsChain(estimator, order=order, chain_method=method).fit(X, Y)
    model = ClassifierChain(estimator, order, pass_on).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(Q), peer.predict_proba(Q), atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_unknown_and_known_entries_by_hand(data, form):
    X, Y, Q = data
    Y[np.random.default_rng(1).random(Y.shape) < 0.3] = np.nan
    order, template = [1, 3, 0, 2], LogisticRegression(C=2.0)
    known = np.full((len(Q), 4), np.nan)
    known[::2, 3] = 1
    known[::3, 1] = 0
    seen, asked = X, Q
    expected = np.empty((len(Q), 4))
    for j in order:
        rows = ~np.isnan(Y[:, j])
        link = template.fit(seen[rows], Y[rows, j])
        filled = np.where(rows, Y[:, j], link.predict_proba(seen)[:, 1] >= 0.5)
        expected[:, j] = link.predict_proba(asked)[:, 1]
        passed_on = np.where(np.isnan(known[:, j]), expected[:, j] >= 0.5, known[:, j])
        seen, asked = np.column_stack([seen, filled]), np.column_stack([asked, passed_on])
    expected = np.where(np.isnan(known), expected, known)
    model = ClassifierChain(template, order).fit(form(X), Y)
    np.testing.assert_allclose(model.predict_proba(form(Q), known=known), expected, atol=1e-4)


def test_linear_chains_keep_their_weights_only(data, tmp_path):
    X, Y, Q = data
    model = ClassifierChain(order="random", random_state=0).fit(X, Y)
    assert model.estimators_ == []
    assert model.label_coef_.shape == (4, 4)
    assert not np.triu(model.label_coef_[np.ix_(model.order_, model.order_)]).any()
    trees = ClassifierChain(DecisionTreeClassifier(max_depth=3), random_state=0).fit(X, Y)
    assert trees.coef_ is None
    trees.save(tmp_path / "trees")
    again = lw.load(tmp_path / "trees")
    np.testing.assert_array_equal(again.predict_proba(Q), trees.predict_proba(Q))


def test_order_by_name_and_at_random(data):
    X, Y, Q = data
    named = as_labels(Y, names=list("abcd"))
    by_name = ClassifierChain(order=["c", "a", "d", "b"]).fit(X, named)
    by_position = ClassifierChain(order=[2, 0, 3, 1]).fit(X, named)
    np.testing.assert_array_equal(by_name.predict_proba(Q), by_position.predict_proba(Q))
    orders = {
        tuple(ClassifierChain(order="random", random_state=s).fit(X, Y).order_) for s in range(8)
    }
    assert len(orders) > 3


@pytest.mark.parametrize("order", [[0, 1, 2], [0, 0, 1, 2], ["a", "b", "c", "x"]])
def test_a_wrong_order_is_refused(data, order):
    with pytest.raises(InputError, match="each of the 4 labels once"):
        ClassifierChain(order=order).fit(data[0], as_labels(data[1], names=list("abcd")))

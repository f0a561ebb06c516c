"""SLEEC against the paper's equations written plainly, and each step by itself."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.dependent.sleec import (
    SLEEC,
    fit_regression,
    label_pairs,
    singular_value_projection,
)

_PLAIN = Path(__file__).parents[2] / "benchmarks" / "sleec.py"
spec = importlib.util.spec_from_file_location("plain_sleec", _PLAIN)
plain = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plain)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(260, 12))
    Y = (X @ rng.normal(size=(12, 9)) + rng.normal(size=(260, 9)) > 1.5).astype(float)
    return X[:200], Y[:200], X[200:]


@pytest.mark.parametrize("n_clusters", [1, 2])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_equals_the_equations(data, n_clusters, form):
    X, Y, Q = data
    model = SLEEC(
        embedding_size=4, label_neighbors=6, n_clusters=n_clusters, n_learners=2, random_state=0
    ).fit(form(X), sp.csr_array(Y))
    expected = plain.sleec_by_loops(X, Y, Q, model)
    np.testing.assert_allclose(model.predict_proba(form(Q)), expected, atol=1e-6)


def test_unknown_entries_have_no_vote(data):
    X, Y, Q = data
    Y[np.random.default_rng(1).random(Y.shape) < 0.4] = np.nan
    model = SLEEC(embedding_size=4, random_state=0).fit(X, Y)
    (part,) = model.learners_[0]["parts"]
    Z = np.column_stack([Q / model.scale_, np.ones(len(Q))]) @ part["weights"]
    for z, probabilities in zip(Z, model.predict_proba(Q), strict=True):
        nearest = np.argsort(((part["embedding"] - z) ** 2).sum(axis=1), kind="stable")[:20]
        some = ~np.isnan(Y[nearest]).all(axis=0)
        np.testing.assert_allclose(
            probabilities[some], np.nanmean(Y[nearest][:, some], axis=0), atol=1e-6
        )


def test_pairs_are_those_with_the_largest_products(data):
    labels = data[1]
    pairs = label_pairs(sp.csr_array(labels), 5).toarray()
    inner = labels @ labels.T
    expected = plain.omega_by_loops(labels, 5)
    stored = label_pairs(sp.csr_array(labels + 1), 200).toarray()
    np.testing.assert_allclose(stored, (labels + 1) @ (labels + 1).T)
    np.testing.assert_allclose(pairs, np.where(expected, inner, 0))


def test_projection_keeps_inner_products():
    """Where rank and pairs suffice, the products come back, and each step fits better."""
    rng = np.random.default_rng(2)
    truth = rng.random((180, 3))
    pairs = label_pairs(sp.csr_array(truth), 180)
    Z = singular_value_projection(pairs, 3, 3, 1.0)
    np.testing.assert_allclose(Z @ Z.T, truth @ truth.T, atol=1e-8)
    labels = sp.csr_array((rng.random((180, 20)) < 0.2).astype(float))
    some = label_pairs(labels, 15)
    rows, columns = some.tocoo().coords
    gaps = []
    for iterations in (1, 3, 9):
        Z = singular_value_projection(some, 8, iterations, 1.0)
        gaps.append(np.linalg.norm((Z @ Z.T)[rows, columns] - some.data))
    assert gaps[0] > gaps[1] > gaps[2]


@pytest.mark.parametrize("shape", [(50, 8), (8, 50)])
def test_ridge_solves_its_normal_equations(shape):
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=shape), rng.normal(size=(shape[0], 4))
    penalty = 0.1 * (X**2).sum() / shape[1]
    expected = np.linalg.solve(X.T @ X + penalty * np.eye(shape[1]), X.T @ Z)
    np.testing.assert_allclose(fit_regression(X, Z, 0.1, 0.0), expected, atol=1e-9)
    np.testing.assert_allclose(fit_regression(sp.csr_array(X), Z, 0.1, 0.0), expected, atol=1e-9)


def test_l1_lowers_the_objective_and_shrinks():
    rng = np.random.default_rng(4)
    X, Z = rng.normal(size=(60, 8)), rng.normal(size=(60, 4))
    penalty, weight = 0.1 * (X**2).sum() / 8, 1.0 * np.abs(Z).mean()

    def objective(V):
        fitted = X @ V
        return ((Z - fitted) ** 2).sum() + penalty * (V**2).sum() + weight * np.abs(fitted).sum()

    ridge, sparse = fit_regression(X, Z, 0.1, 0.0), fit_regression(X, Z, 0.1, 1.0, iterations=2000)
    assert objective(sparse) < objective(ridge)
    for nudge in rng.normal(size=(20, 8, 4)):
        assert objective(sparse) <= objective(sparse + 1e-3 * nudge) + 1e-6
    assert np.abs(X @ sparse).sum() < np.abs(X @ ridge).sum()

"""Boosted trees against scikit-learn's, label by label."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import HistGradientBoostingClassifier

from labelweave.dependent.boosted_trees import BoostedTrees


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 8))
    Y = (X @ rng.normal(size=(8, 3)) + rng.normal(size=(150, 3)) > 0.8).astype(float)
    return X, Y


@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_equals_scikit_learns_boosting_one_by_one(data, unknown):
    X, Y = data
    Y[np.random.default_rng(1).random(Y.shape) < unknown] = np.nan
    probabilities = BoostedTrees(max_iter=15, random_state=0).fit(X, Y).predict_proba(X)
    for j in range(3):
        known = ~np.isnan(Y[:, j])
        one = HistGradientBoostingClassifier(max_iter=15).fit(X[known], Y[known, j])
        np.testing.assert_allclose(probabilities[:, j], one.predict_proba(X)[:, 1], rtol=1e-6)


def test_importance_is_the_sum_of_gains(data):
    X, Y = data
    one = HistGradientBoostingClassifier(max_iter=15).fit(X, Y[:, 1])
    expected = np.zeros(8)
    for (tree,) in one._predictors:
        for node in tree.nodes:
            if not node["is_leaf"]:
                expected[node["feature_idx"]] += node["gain"]
    importance = BoostedTrees(max_iter=15).fit(X, Y).feature_importance()[1]
    np.testing.assert_allclose(importance, expected / expected.sum(), rtol=1e-5)


def test_wide_sparse_features_are_limited_to_the_most_used():
    rng = np.random.default_rng(2)
    X = sp.csr_array((rng.random((200, 40)) < np.linspace(0.01, 0.6, 40)) * 1.0)
    Y = X[:, [35, 39]].toarray().astype(int)
    model = BoostedTrees(max_iter=10, max_dense_features=10, random_state=0).fit(X, Y)
    used = np.argsort(-(X.toarray() != 0).sum(axis=0), kind="stable")[:10]
    np.testing.assert_array_equal(model.features_, np.sort(used))
    assert model.score(X, Y) == 1
    assert model.feature_importance().shape == (2, 40)
    assert list(model.feature_importance().argmax(axis=1)) == [35, 39]
    dense = model.predict_proba(X.toarray())
    np.testing.assert_array_equal(dense, model.predict_proba(X))


def test_few_rows_still_split():
    X = np.arange(12.0)[:, None]
    Y = (X > 5).astype(int)
    assert BoostedTrees(random_state=0).fit(X, Y).score(X, Y) == 1


def test_saved_models_stay_small(data, tmp_path):
    X, Y = data
    model = BoostedTrees(max_iter=30, random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    size = sum(file.stat().st_size for file in (tmp_path / "model").rglob("*") if file.is_file())
    assert size < 40 * len(model.node_value_) + 20_000

"""Boosted trees against scikit-learn's, label by label."""

import numpy as np
import pandas as pd
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


def test_categories_and_blanks_as_in_scikit_learn():
    """Splits of categories are those of scikit-learn, also of rows that a label does not have."""
    random = np.random.default_rng(0)
    n_rows = 400
    brand = random.choice([f"b{k}" for k in range(12)], n_rows)
    frame = pd.DataFrame(
        {
            "price": np.where(random.random(n_rows) < 0.2, np.nan, random.normal(size=n_rows)),
            "brand": np.where(random.random(n_rows) < 0.1, None, brand),
        }
    )
    odd = np.isin(brand, ["b1", "b4", "b7", "b8"])
    Y = np.column_stack([odd, odd ^ (frame["price"].fillna(1) > 0)]).astype(float)
    Y[np.isin(brand, ["b2", "b3"]), 1] = np.nan  # these categories are unknown to this label
    model = BoostedTrees(max_iter=20).fit(frame, Y)
    codes = model.table_encoder_.transform(frame)
    assert np.isnan(codes).any(axis=0).all()
    for j in range(2):
        known = ~np.isnan(Y[:, j])
        peer = HistGradientBoostingClassifier(
            max_iter=20, min_samples_leaf=20, categorical_features=[0], early_stopping=False
        ).fit(codes[known], Y[known, j])
        expected = peer.predict_proba(codes)[:, 1]
        np.testing.assert_allclose(model.predict_proba(frame)[:, j], expected, atol=1e-6)
    shares = model.feature_importance()
    assert shares.shape == (2, 2)
    assert shares[0].argmax() == 1


def test_missing_values_of_an_array_as_in_scikit_learn():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 3))
    X[random.random(X.shape) < 0.2] = np.nan
    Y = (np.nan_to_num(X[:, [0]], nan=1.0) > 0).astype(int)
    peer = HistGradientBoostingClassifier(max_iter=10).fit(X, Y[:, 0])
    model = BoostedTrees(max_iter=10).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X)[:, 0], peer.predict_proba(X)[:, 1], atol=1e-6)

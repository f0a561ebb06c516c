"""The forest against scikit-learn's own and against weights counted one by one."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier, ExtraTreeRegressor

from labelweave.dependent.extra_trees import ExtraTrees
from labelweave.shallow import forest
from labelweave.shallow.forest import concatenate_trees


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 8)).astype(np.float32)
    Y = (X @ rng.normal(size=(8, 4)) + rng.normal(size=(200, 4)) > 0.8).astype(float)
    return X, Y, rng.normal(size=(50, 8)).astype(np.float32)


def seeds_of_trees(seed, number):
    """The seed of each tree, as the estimator draws it."""
    outer = np.random.RandomState(seed).randint(np.iinfo(np.int32).max, size=number)
    return [np.random.RandomState(s).randint(np.iinfo(np.int32).max) for s in outer]


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_equals_scikit_learns_trees(data, form):
    X, Y, Q = data
    leaf = 7  # in smaller nodes many splits are equally good
    how = {"max_features": "sqrt", "min_samples_leaf": leaf}
    expected = np.zeros((len(Q), 4))
    for seed in seeds_of_trees(3, 15):
        tree = ExtraTreeClassifier(random_state=seed, **how).fit(X, Y)
        expected += np.column_stack([p[:, 1] for p in tree.predict_proba(Q)]) / 15
    probabilities = ExtraTrees(15, **how, random_state=3).fit(form(X), Y).predict_proba(form(Q))
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)


def test_nodes_are_those_of_scikit_learn(data):
    X, Y, Q = data
    forest = ExtraTreesClassifier(5, random_state=0).fit(X, Y)
    splits = concatenate_trees([tree.tree_ for tree in forest.estimators_])
    np.testing.assert_array_equal(splits.leaves_of(Q) - splits.roots, forest.apply(Q))
    parents = splits.parents()
    assert (parents[splits.roots] == -1).all()
    inner = np.flatnonzero(~splits.is_leaf)
    np.testing.assert_array_equal(
        parents[splits.children[inner]], np.repeat(inner, 2).reshape(-1, 2)
    )


@pytest.mark.parametrize("trees", ["extra", "random-forest"])
def test_unknown_entries_weigh_nothing_in_the_leaves(data, trees):
    X, Y, Q = data
    Y[np.random.default_rng(1).random(Y.shape) < 0.4] = np.nan
    model = ExtraTrees(6, trees, min_samples_leaf=5, random_state=0).fit(X, Y)
    leaves = model._splits().leaves_of(Q)
    members = model.members_.toarray()
    expected = np.empty((len(Q), 4))
    for i in range(len(Q)):
        for label in range(4):
            positive = known = 0.0
            for leaf in leaves[i]:
                for row in np.flatnonzero(members[leaf]):
                    weight = members[leaf, row] / members[leaf].sum()
                    if not np.isnan(Y[row, label]):
                        known += weight
                        positive += weight * Y[row, label]
            expected[i, label] = positive / known
    np.testing.assert_allclose(model.predict_proba(Q), expected, rtol=1e-4, atol=1e-6)


def test_rows_with_nothing_known_near_get_the_frequency():
    X = np.repeat([[0.0], [10.0]], 20, axis=0)
    Y = np.tile([[1.0, 0.0], [0.0, 1.0]], (20, 1))
    Y[:20, 1] = np.nan
    Y[20:, 0] = [0, 1, 1, 1] * 5
    probabilities = ExtraTrees(5, random_state=0).fit(X, Y).predict_proba([[0.0], [10.0]])
    assert probabilities[0, 1] == pytest.approx(np.nanmean(Y[:, 1]))
    assert probabilities[1, 0] == pytest.approx(0.75)


def test_fully_grown_trees_equal_scikit_learns_regression(data):
    X, Y, Q = data
    trees = [ExtraTreeRegressor(max_features="sqrt", random_state=s) for s in seeds_of_trees(3, 9)]
    expected = np.mean([tree.fit(X, Y).predict(Q) for tree in trees], axis=0)
    probabilities = ExtraTrees(9, random_state=3).fit(X, Y).predict_proba(Q)
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)


def test_importance_is_scikit_learns_for_one_label(data):
    X, Y, _ = data
    expected = np.zeros(8)
    for seed in seeds_of_trees(3, 10):
        tree = ExtraTreeRegressor(max_features="sqrt", random_state=seed).fit(X, Y[:, 0])
        expected += tree.feature_importances_ / 10
    importance = ExtraTrees(10, random_state=3).fit(X, Y[:, :1]).feature_importance()
    np.testing.assert_allclose(importance[0], expected, atol=1e-5)


def test_each_label_has_its_own_important_feature():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6))
    Y = (X[:, [4, 1]] > 0).astype(int)
    for trees in ("extra", "random-forest"):
        model = ExtraTrees(20, trees, random_state=0).fit(X, Y)
        assert list(model.feature_importance().argmax(axis=1)) == [4, 1]


def test_projections_keep_most_of_the_quality():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 10))
    Y = (X @ rng.normal(size=(10, 100)) > 2).astype(int)
    right = {}
    for n_projections in (None, 20):
        model = ExtraTrees(30, n_projections=n_projections, random_state=0)
        right[n_projections] = model.fit(X[:300], Y[:300]).predict_proba(X[300:])
    frequency = Y[:300].mean(axis=0)
    loss = {k: np.mean((p - Y[300:]) ** 2) for k, p in right.items()}
    baseline = np.mean((frequency - Y[300:]) ** 2)
    assert loss[20] < (loss[None] + baseline) / 2


def test_a_row_of_weight_2_is_two_equal_rows(data):
    X, Y, Q = data
    Y[::9, 0] = np.nan
    weight = np.where(np.arange(len(X)) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(len(X)), weight.astype(int))
    weighted = ExtraTrees(10, random_state=0).fit(X, Y, sample_weight=weight)
    repeated = ExtraTrees(10, random_state=0).fit(X[twice], Y[twice])
    np.testing.assert_array_equal(weighted.node_feature_, repeated.node_feature_)
    np.testing.assert_allclose(weighted.frequency_, repeated.frequency_)
    np.testing.assert_allclose(weighted.predict_proba(Q), repeated.predict_proba(Q), atol=1e-6)
    importances = (model.feature_importance() for model in (weighted, repeated))
    np.testing.assert_allclose(*importances, atol=1e-6)
    plain = ExtraTrees(10, random_state=0).fit(X, Y).predict_proba(Q)
    assert np.abs(weighted.predict_proba(Q) - plain).max() > 0.05


@pytest.mark.parametrize("trees", ["extra", "random-forest"])
def test_weighted_trees_are_those_of_scikit_learn(data, trees):
    X, Y, Q = data
    weight = np.random.default_rng(2).integers(1, 6, size=len(X)) / 2
    how = {"max_features": "sqrt", "min_samples_leaf": 7}
    expected = np.zeros((len(Q), 4))
    for outer in np.random.RandomState(3).randint(np.iinfo(np.int32).max, size=15):
        random = np.random.RandomState(outer)
        kind = ExtraTreeClassifier if trees == "extra" else DecisionTreeClassifier
        tree, counted = kind(random_state=random.randint(np.iinfo(np.int32).max), **how), weight
        if trees == "random-forest":
            counted = weight * np.bincount(random.randint(len(X), size=len(X)), minlength=len(X))
        tree.fit(X, Y, sample_weight=counted)
        expected += np.column_stack([p[:, 1] for p in tree.predict_proba(Q)]) / 15
    model = ExtraTrees(15, trees, **how, random_state=3).fit(X, Y, sample_weight=weight)
    np.testing.assert_allclose(model.predict_proba(Q), expected, atol=1e-6)


@pytest.mark.parametrize("factor", [1e-300, 2.0**-40, 1e300])
def test_only_ratios_of_weights_count(data, factor):
    X, Y, Q = data
    weight = np.random.default_rng(2).random(len(X)) + 0.1
    small, large = (
        ExtraTrees(5, min_samples_leaf=5, random_state=0).fit(X, Y, sample_weight=w)
        for w in (weight, factor * weight)
    )
    np.testing.assert_allclose(small.predict_proba(Q), large.predict_proba(Q), atol=1e-3)


def test_extreme_ratios_of_weights(data):
    X, Y, Q = data
    Y[::9, 0] = np.nan
    weight = np.geomspace(1e-300, 1e300, len(X))
    model = ExtraTrees(5, random_state=0).fit(X, Y, sample_weight=weight)
    assert np.isfinite(model.predict_proba(Q)).all()
    assert np.isfinite(model.feature_importance()).all()


def test_pure_nodes_are_not_split_for_the_rounding_of_weights(data):
    X, Y, _ = data
    Y = np.column_stack([Y[:, 0]] * 3)
    weight = np.random.default_rng(2).random(len(X)) + 0.1
    model = ExtraTrees(5, random_state=0).fit(X, Y, sample_weight=weight)
    splits = model._splits()
    below = splits.children[~splits.is_leaf]
    pairs = below[splits.is_leaf[below].all(axis=1)]
    positive = (model.members_ @ sp.csr_array(Y[:, :1])).toarray()[:, 0] > 0
    assert len(pairs) > 10
    assert (positive[pairs[:, 0]] != positive[pairs[:, 1]]).all()


def test_the_tables_of_scikit_learns_trees_are_let_go(data, monkeypatch):
    """A view of a tree's nodes would keep its table of values, gigabytes for many labels."""
    joined = forest.concatenate_trees
    seen = []
    monkeypatch.setattr(
        forest, "concatenate_trees", lambda trees: seen.extend(trees) or joined(trees)
    )
    X, Y = data[:2]
    ExtraTrees(3, random_state=0).fit(X, Y)
    assert len(seen) == 3
    for tree in seen:
        arrays = [value for value in vars(tree).values() if isinstance(value, np.ndarray)]
        assert len(arrays) == 5
        assert all(array.base is None for array in arrays)

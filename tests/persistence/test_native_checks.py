"""Crafted scikit-learn parts, which would crash the process when they predict, are refused."""

import json
import zipfile

import numpy as np
import pytest
import scipy.sparse as sp
import skops.io
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    IsolationForest,
    RandomForestClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KernelDensity, KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

from labelweave.exceptions import InputError, ModelFolderError
from labelweave.persistence.native_checks import check_loaded
from labelweave.persistence.sklearn_parts import load_sklearn

HUGE = 10**6


@pytest.fixture(scope="module")
def target(labels):
    return labels[:, 0]


def stored(value, folder):
    """A file that was not checked when it was written."""
    path = folder / "part.skops"
    skops.io.dump(value, path)
    return path


def assert_refused(value, folder, words="parts do not fit together"):
    with pytest.raises(ModelFolderError, match=words):
        load_sklearn(stored(value, folder))


def set_nodes(tree, **values):
    """Change the root of a tree, or the attributes of the whole tree."""
    state = tree.__getstate__()
    state["nodes"] = state["nodes"].copy()
    for name, value in values.items():
        if name in state:
            state[name] = value
        else:
            state["nodes"][name][0] = value
    tree.__setstate__(state)


@pytest.mark.parametrize(
    "values",
    [
        {"left_child": HUGE},
        {"left_child": 0},  # the root is its own child: prediction would not end
        {"right_child": 1},  # two parents
        {"right_child": -5},
        {"feature": HUGE},
        {"feature": -HUGE},
        {"max_depth": 0},
    ],
    ids=str,
)
@pytest.mark.parametrize("depth", ["alone", "in a forest"])
def test_trees(rows, target, tmp_path, values, depth):
    if depth == "alone":
        model = DecisionTreeClassifier(random_state=0).fit(rows, target)
        set_nodes(model.tree_, **values)
    else:
        model = RandomForestClassifier(2, random_state=0).fit(rows, target)
        set_nodes(model.estimators_[1].tree_, **values)
    assert_refused([model], tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        lambda tree: tree["__reduce__"]["args"]["content"][2].update(content="99"),
        lambda tree: tree["content"]["content"]["node_count"].update(content=str(HUGE)),
        lambda tree: tree["content"]["content"]["node_count"].update(content="0"),
        lambda tree: tree["content"]["content"]["nodes"].update(__loader__="CachedNode"),
        lambda tree: tree.update(__loader__="LossNode"),
    ],
)
def test_trees_that_cannot_be_constructed(rows, target, tmp_path, change):
    """Their constructor would read beyond its arrays."""
    path = stored(DecisionTreeClassifier().fit(rows, target), tmp_path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    schema = json.loads(parts["schema.json"])
    change(schema["content"]["content"]["tree_"])
    parts["schema.json"] = json.dumps(schema).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises((ModelFolderError, ValueError, AttributeError)):
        load_sklearn(path)


def test_ensembles_over_other_features(rows, target, tmp_path):
    """They pass features on unchecked."""
    forest = RandomForestClassifier(2).fit(rows, target)
    forest.n_features_in_ = 1
    assert_refused(forest, tmp_path)
    forest = IsolationForest(n_estimators=2).fit(rows)
    forest.estimators_[1] = IsolationForest(n_estimators=1).fit(np.tile(rows, 3)).estimators_[0]
    assert_refused(forest, tmp_path)
    boosting = GradientBoostingClassifier(n_estimators=2).fit(rows, target)
    boosting.estimators_ = np.tile(boosting.estimators_, (1, 9))
    assert_refused(boosting, tmp_path)
    boosting.estimators_ = np.array([[LogisticRegression()]])
    assert_refused(boosting, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("left", HUGE),
        ("right", 0),
        ("feature_idx", HUGE),
        ("feature_idx", -1),
        ("is_categorical", 1),
    ],
)
def test_histogram_boosting(rows, target, tmp_path, name, value):
    model = HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=2).fit(rows, target)
    model._predictors[1][0].nodes[name][0] = value
    assert_refused(model, tmp_path)


def test_sets_of_categories_in_histogram_boosting(rows):
    codes = np.column_stack([np.arange(40) % 3, rows[:, 0]])
    model = HistGradientBoostingClassifier(
        max_iter=1, min_samples_leaf=1, categorical_features=[0]
    ).fit(codes, np.arange(40) % 3 == 1)
    assert check_loaded(model) is model
    assert model._predictors[0][0].nodes["is_categorical"][0]
    model._predictors[0][0].nodes["bitset_idx"][0] = HUGE
    with pytest.raises(InputError, match="parts do not fit together"):
        check_loaded(model)


@pytest.mark.parametrize("algorithm", ["kd_tree", "ball_tree"])
def test_neighbour_trees_are_built_again(rows, target, tmp_path, algorithm):
    model = KNeighborsClassifier(3, algorithm=algorithm, leaf_size=2).fit(rows, target)
    expected = model.predict_proba(rows)
    state = list(model._tree.__getstate__())
    state[1] = np.full_like(state[1], HUGE)  # rows of the leaves
    state[2] = np.zeros_like(state[2])
    state[5:7] = HUGE, HUGE  # levels and nodes
    model._tree.__setstate__(tuple(state))
    again = load_sklearn(stored(model, tmp_path))
    assert_rebuilt(again._tree)
    np.testing.assert_array_equal(again.predict_proba(rows), expected)


def assert_rebuilt(tree):
    """Each row is in one leaf; a tree that is not would end the process when it is asked."""
    in_leaves = tree.__getstate__()[1]
    np.testing.assert_array_equal(np.sort(in_leaves), np.arange(len(in_leaves)))


def test_neighbour_trees_outside_of_a_classifier(rows, tmp_path):
    model = KernelDensity(leaf_size=2).fit(rows)
    expected = model.score_samples(rows)
    state = list(model.tree_.__getstate__())
    state[1] = np.full_like(state[1], HUGE)
    model.tree_.__setstate__(tuple(state))
    again = load_sklearn(stored(model, tmp_path))
    assert_rebuilt(again.tree_)
    np.testing.assert_array_equal(again.score_samples(rows), expected)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_y", np.full(40, HUGE)),
        ("_y", np.zeros(3, dtype=int)),
        ("n_samples_fit_", HUGE),
        ("n_features_in_", 2),
        ("n_neighbors", HUGE),
        ("n_jobs", HUGE),
        ("_fit_X", np.zeros((40, 2))),
        ("_fit_method", None),
    ],
)
def test_neighbours(rows, target, tmp_path, name, value):
    model = KNeighborsClassifier(3, algorithm="brute").fit(rows, target)
    load_sklearn(stored(model, tmp_path))
    setattr(model, name, value)
    if name == "_fit_method":  # without compiled code behind it
        load_sklearn(stored(model, tmp_path))
    else:
        assert_refused(model, tmp_path)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_n_support", np.array([HUGE, HUGE], dtype=np.int32)),
        ("_n_support", np.ones(50, dtype=np.int32)),
        ("support_", np.zeros(1, dtype=np.int32)),
        ("support_vectors_", np.zeros((3, 6))),
        ("_dual_coef_", np.zeros((1, 1))),
        ("_intercept_", np.zeros(0)),
        ("_probA", np.zeros(1)),
        ("kernel", "precomputed"),
        ("_sparse", 1),
        ("_impl", "epsilon_svr"),
    ],
)
def test_support_vector_machines(rows, target, form, name, value):
    model = check_loaded(SVC().fit(form(rows), target))
    if form is sp.csr_matrix and getattr(value, "ndim", 0) == 2:
        value = form(value)
    setattr(model, name, value)
    with pytest.raises(InputError, match=r"parts do not fit together|replaces '_impl'"):
        check_loaded(model)


def test_support_vector_regression(rows, target, tmp_path):
    model = SVR().fit(rows, target)
    load_sklearn(stored(model, tmp_path))
    model._n_support = np.ones(HUGE, dtype=np.int32)
    assert_refused(model, tmp_path)


def test_clusters_vocabularies_and_encoders(rows, tmp_path):
    clusters = KMeans(2, n_init=1).fit(rows)
    load_sklearn(stored(clusters, tmp_path))
    clusters.cluster_centers_ = np.zeros((2, 900))
    assert_refused(clusters, tmp_path)
    words = CountVectorizer().fit(["a red car", "a green car"])
    load_sklearn(stored(words, tmp_path))
    words.vocabulary_["car"] = HUGE
    assert_refused(words, tmp_path)
    assert_refused(HashingVectorizer(n_features=0), tmp_path)
    codes = OneHotEncoder().fit([["a"], ["b"], ["c"]])
    load_sklearn(stored(codes, tmp_path))
    codes._n_features_outs = [1]
    assert_refused(codes, tmp_path)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_default_to_infrequent_mappings", [np.full(3, HUGE)]),
        ("_default_to_infrequent_mappings", [np.full(3, -1)]),
        ("_default_to_infrequent_mappings", [None]),
        ("_drop_idx_after_grouping", np.array([HUGE], dtype=object)),
        ("_infrequent_enabled", False),
        ("categories_", [np.array([9.0, 1.0, 2.0])]),  # a search among them would end beyond
    ],
)
def test_codes_of_categories(tmp_path, name, value):
    encoder = OneHotEncoder(min_frequency=2, sparse_output=False).fit([[1.0], [1.0], [2.0], [9.0]])
    assert list(load_sklearn(stored(encoder, tmp_path)).transform([[9.0]])[0]) == [0, 1]
    setattr(encoder, name, value)
    assert_refused(encoder, tmp_path)


@pytest.mark.parametrize("categories", [[1.0, 2.0, np.nan], ["b", "a", None], ["b", "a"]])
@pytest.mark.parametrize("drop", [None, "first"])
def test_encoders_of_any_categories(tmp_path, categories, drop):
    column = np.array(categories, dtype=object if None in categories else None)[:, None]
    encoder = OneHotEncoder(sparse_output=False, drop=drop).fit(column)
    again = load_sklearn(stored(encoder, tmp_path))
    np.testing.assert_array_equal(again.transform(column), encoder.transform(column))


@pytest.mark.parametrize(("name", "value"), [("_n_out_full", HUGE), ("_max_degree", HUGE)])
def test_powers_of_features(rows, tmp_path, name, value):
    features = PolynomialFeatures(2).fit(rows)
    load_sklearn(stored(features, tmp_path))
    setattr(features, name, value)
    assert_refused(features, tmp_path)


def test_matrices():
    """No saved estimator has one, but a file may claim the name of the base class."""
    part = LogisticRegression()
    part.coef_ = sp.csr_matrix(np.eye(3))
    assert check_loaded(part) is part
    part.coef_.indices[1] = HUGE
    with pytest.raises(ValueError, match=r"indices|index"):  # SciPy's words
        check_loaded(part)


def test_random_states(rows, target, tmp_path):
    model = MLPClassifier((2,), max_iter=2, random_state=0)
    with pytest.warns(match="Maximum iterations"):
        model.fit(rows, target)
    load_sklearn(stored(model, tmp_path))
    state = model._random_state.get_state()
    model._random_state.set_state((*state[:2], HUGE, *state[3:]))
    assert_refused(model, tmp_path)


def test_unfitted_estimators(tmp_path):
    parts = [SVC(), KNeighborsClassifier(), RandomForestClassifier(), CountVectorizer()]
    assert len(load_sklearn(stored(parts, tmp_path))) == len(parts)

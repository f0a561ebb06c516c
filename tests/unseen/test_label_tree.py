"""Label trees: they learn, find the best labels, are saved, and say what they refuse."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.metrics import get_metric
from labelweave.text import TextClassifier
from labelweave.unseen.label_tree import LabelTree


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = sp.csr_array((rng.random((300, 40)) < 0.2).astype(float))
    return X, (X[:, :12] > 0).astype(int).toarray()


def test_it_learns_and_is_the_same_again(data):
    X, Y = data
    model = LabelTree(max_leaves=3, random_state=0).fit(X[:200], Y[:200])
    probabilities = model.predict_proba(X[200:])
    assert probabilities.shape == (100, 12)
    assert get_metric("map")(Y[200:], Y_score=probabilities) > 0.95
    again = LabelTree(max_leaves=3, random_state=0).fit(X[:200], Y[:200]).predict_proba(X[200:])
    np.testing.assert_array_equal(probabilities, again)
    several = LabelTree(3, max_leaves=3, random_state=0).fit(X[:200], Y[:200])
    assert get_metric("map")(Y[200:], Y_score=several.predict_proba(X[200:])) > 0.95


def test_fitted_again_it_forgets_the_first_tree(data):
    X, Y = data
    model = LabelTree(random_state=0).fit(X, Y)
    model.predict_proba(X)
    model.fit(X, 1 - Y)
    assert get_metric("map")(1 - Y, Y_score=model.predict_proba(X)) > 0.9


@pytest.mark.parametrize("n_trees", [1, 2])
def test_pickled_and_saved_without_its_folder(data, tmp_path, n_trees):
    X, Y = data
    model = LabelTree(n_trees, random_state=0).fit(X, Y)
    expected = model.predict_proba(X)
    model.save(tmp_path / "tree")
    for other in (pickle.loads(pickle.dumps(model)), lw.load(tmp_path / "tree")):
        np.testing.assert_array_equal(other.predict_proba(X), expected)


def test_rows_without_features_and_without_labels(data):
    X, Y = data
    X, Y = X.toarray(), Y.copy()
    X[0], Y[1] = 0, 0
    assert np.isfinite(LabelTree(random_state=0).fit(X, Y).predict_proba(X)).all()


def test_unknown_entries_are_ignored(data):
    """Rows whose first label is hidden say nothing against it."""
    X, Y = data
    hidden = Y.astype(float)
    hidden[:150, 0] = np.where(Y[:150, 0] == 1, np.nan, 0)
    as_zero = np.nan_to_num(hidden)
    expected, wrong = (
        LabelTree(random_state=0).fit(X, labels).predict_proba(X)[:, 0]
        for labels in (hidden, as_zero)
    )
    is_positive = Y[:, 0] == 1
    assert expected[is_positive].mean() > wrong[is_positive].mean() + 0.1


def test_a_beam_finds_what_the_whole_tree_finds(data):
    X, Y = data
    model = LabelTree(max_leaves=2, branches=2, beam=12, random_state=0).fit(X, Y)
    top, every = model.predict_top_k(X, k=3), model.predict_proba(X)
    rows = np.repeat(np.arange(len(every)), 3)
    np.testing.assert_allclose(top.data, every[rows, top.indices], rtol=1e-5)


def test_each_label_is_one_leaf_of_each_tree(data):
    X, Y = data
    model = LabelTree(max_leaves=2, branches=4, random_state=0).fit(X, Y)
    for tree in model.trees_:
        assert sorted(tree.label[tree.label >= 0].tolist()) == list(range(12))
        assert np.diff(tree.first).max() <= 4


def test_labels_without_a_positive_are_never_the_best(data):
    X, Y = data
    Y = Y.copy()
    Y[:, :6] = 0
    model = LabelTree(max_leaves=2, random_state=0).fit(X, Y)
    assert model.predict_top_k(X, k=1).indices.min() >= 6


def test_changed_arrays_end_in_one_sentence_or_in_probabilities(data):
    X, Y = data
    model = LabelTree(n_trees=1, max_leaves=3, random_state=0).fit(X, Y)
    state, rng = model._state(), np.random.default_rng(0)
    messages = []
    for _ in range(200):
        name = "tree_0_" + rng.choice(["first", "branch", "label"])
        changed = state[name].copy()
        changed[rng.integers(len(changed))] = rng.choice([-1, 0, 1, 2, 13, 2**31 - 1, -(2**31)])
        if rng.random() < 0.2:
            changed = changed[: rng.integers(len(changed))]
        try:
            model._set_state({**state, name: changed})
        except InputError as error:
            messages.append(str(error))
        else:
            assert np.isfinite(model.predict_proba(X)).all()
    assert len(messages) > 100
    assert set(messages) == {"the arrays of the label tree are damaged or were changed"}


def test_weights_of_another_width_are_refused(data):
    model = LabelTree(n_trees=1, random_state=0).fit(*data)
    state = model._state()
    with pytest.raises(InputError, match="damaged or were changed"):
        model._set_state({**state, "tree_0_weights": state["tree_0_weights"][:, :-1]})


def test_as_the_base_of_a_zero_shot_model():
    texts = ["red apple", "green apple", "red car", "green car"] * 10
    labels = [["red", "fruit"], ["green", "fruit"], ["red", "vehicle"], ["green", "vehicle"]] * 10
    base = TextClassifier(LabelTree(random_state=0))
    model = lw.ConSE(base, encoder="tfidf", random_state=0).fit(texts, labels)
    model.add_labels(["red fruit"])
    assert np.isfinite(model.predict_proba(["red apple"])).all()

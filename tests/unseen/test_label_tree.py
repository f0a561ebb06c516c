"""Label trees by napkinXC: they learn, are saved without their folder, and say what they refuse."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.metrics import get_metric
from labelweave.text import TextClassifier
from labelweave.unseen.label_tree import LabelTree

pytest.importorskip("napkinxc", reason="napkinXC is not installed")


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


def test_unknown_labels_are_refused(data):
    X, Y = data
    Y = Y.astype(float)
    Y[0, 0] = np.nan
    with pytest.raises(InputError, match="cannot use unknown labels"):
        LabelTree().fit(X, Y)


@pytest.mark.parametrize("name", ["../x.bin", "/etc/x.bin", "a/../b.bin", "..", "a/b/c.bin"])
def test_names_that_leave_the_folder_are_refused(name):
    with pytest.raises(InputError, match="not files of a label tree"):
        LabelTree()._set_state({"names": [name], "file_0": np.zeros(1, np.uint8)})


def test_as_the_base_of_a_zero_shot_model():
    texts = ["red apple", "green apple", "red car", "green car"] * 10
    labels = [["red", "fruit"], ["green", "fruit"], ["red", "vehicle"], ["green", "vehicle"]] * 10
    base = TextClassifier(LabelTree(random_state=0))
    model = lw.ConSE(base, encoder="tfidf", random_state=0).fit(texts, labels)
    model.add_labels(["red fruit"])
    assert np.isfinite(model.predict_proba(["red apple"])).all()

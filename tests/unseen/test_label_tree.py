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
from labelweave.unseen.label_tree_files import read_node_classifiers

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


@pytest.mark.parametrize("shape", [(300, 40, 12), (200, 60_000, 40)])
@pytest.mark.parametrize("n_trees", [1, 2])
def test_predictions_are_those_of_napkinxc(tmp_path, shape, n_trees):
    n_rows, n_features, n_labels = shape
    rng = np.random.default_rng(0)
    X = sp.random_array((n_rows, n_features), density=200 / n_features / 10, rng=rng, format="csr")
    Y = np.asarray((X[:, :n_labels] > 0.3).toarray(), dtype=int)
    Y[:, 3], Y[:, 4], Y[:, -1] = 1, 0, 0
    model = LabelTree(n_trees, max_leaves=3, random_state=0).fit(X, Y)
    for name, content in model.files_.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(content.tobytes())
    theirs = model._tree_in(str(tmp_path))
    theirs.load()
    expected = np.zeros((n_rows, n_labels))
    for row, pairs in enumerate(theirs.predict_proba(sp.csr_matrix(X, dtype="f4"), top_k=n_labels)):
        for label, probability in pairs:
            expected[row, label] = probability
    compared = slice(n_trees > 1, None)  # the mean of several leaves out their label 0
    ours = model.predict_proba(X)[:, compared]
    np.testing.assert_allclose(ours, expected[:, compared], atol=1e-5)


def test_files_that_are_missing_are_refused(data):
    model = LabelTree(random_state=0).fit(*data)
    with pytest.raises(InputError, match="files of 0 label trees, not 1"):
        model._set_state({**model._state(), "names": ["../x.bin"]})


def test_changed_files_end_in_one_sentence_or_in_probabilities(data):
    """Bytes of the two files that are read, at random places and where counts and indices are."""
    X, Y = data
    model = LabelTree(max_leaves=3, random_state=0).fit(X, Y)
    state, rng = model._state(), np.random.default_rng(0)
    read = [k for k, name in enumerate(state["names"]) if name in ("tree.bin", "weights.bin")]
    messages = []
    for _ in range(300):
        file = f"file_{rng.choice(read)}"
        content = state[file].copy()
        place = rng.integers(4 if rng.random() < 0.5 else len(content) // 4) * 4
        content[place : place + 4] = np.frombuffer(
            np.int32(rng.choice([-1, 0, 1, 2, 13, 2**31 - 1, -(2**31)])).tobytes(), np.uint8
        )
        if rng.random() < 0.2:
            content = content[: rng.integers(len(content))]
        try:
            model._set_state({**state, file: content})
        except InputError as error:
            messages.append(str(error))
        else:
            probabilities = model.predict_proba(X)
            assert probabilities.shape == Y.shape
            assert np.isfinite(probabilities).all()
    assert len(messages) > 100
    assert set(messages) == {"the files of the label tree are damaged or were changed"}


@pytest.mark.parametrize(
    ("index", "is_refused"), [(-1, True), (5, False), (6, True), (2**31 - 1, True)]
)
def test_weights_of_features_that_there_are_not_are_refused(index, is_refused):
    """Three features are at the positions 2 to 4; 5 is unused, and more there are not."""
    tree = np.array([1, 1, 0, 0, 0, -1], "<i4").tobytes()  # one leaf, which is the root
    sizes = np.array([6, 1, 6, 1], "<u8").tobytes()
    pair = np.int32(index).tobytes() + np.float32(1).tobytes()
    weights = np.array([1, 2, 1, 0], "<i4").tobytes() + sizes + b"\1" + pair + b"\0"
    if is_refused:
        with pytest.raises(InputError, match="damaged or were changed"):
            read_node_classifiers(tree, weights, n_features=3, n_labels=1)
    else:
        assert read_node_classifiers(tree, weights, n_features=3, n_labels=1).weights.nnz == 0


def test_as_the_base_of_a_zero_shot_model():
    texts = ["red apple", "green apple", "red car", "green car"] * 10
    labels = [["red", "fruit"], ["green", "fruit"], ["red", "vehicle"], ["green", "vehicle"]] * 10
    base = TextClassifier(LabelTree(random_state=0))
    model = lw.ConSE(base, encoder="tfidf", random_state=0).fit(texts, labels)
    model.add_labels(["red fruit"])
    assert np.isfinite(model.predict_proba(["red apple"])).all()

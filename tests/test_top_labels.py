"""The best labels of each row: the same as from the probabilities of all labels."""

import numpy as np
import pytest

import labelweave as lw
from labelweave import top_labels
from labelweave.top_labels import best_entries, top_of_dense


def test_best_entries_are_ordered_within_rows_that_are_not():
    rows, scores = np.array([2, 0, 2, 0, 2]), np.array([0.1, 0.3, 0.9, 0.7, 0.5])
    assert best_entries(rows, scores, 2).tolist() == [3, 1, 2, 4]


def test_top_of_dense_has_the_largest_numbers():
    scores = np.random.default_rng(0).random((7, 9))
    top = top_of_dense(scores, 3).toarray()
    cut = np.sort(scores, axis=1)[:, [-3]]
    np.testing.assert_array_equal(top, np.where(scores >= cut, scores, 0))


@pytest.mark.parametrize("method", ["mlknn", "label-tree"])
def test_predict_top_k_agrees_with_predict_proba(method, monkeypatch):
    rng = np.random.default_rng(0)
    X = (rng.random((120, 8)) < 0.4).astype(float)
    model = lw.make(method, random_state=0) if method == "label-tree" else lw.make(method)
    model.fit(X, X[:, :6])
    monkeypatch.setattr(top_labels, "_CHUNK_ENTRIES", 60)  # ten rows at a time
    top = model.predict_top_k(X, k=2)
    assert top.shape == (120, 6)
    assert np.diff(top.indptr).tolist() == [2] * 120
    every = model.predict_proba(X)
    rows = np.repeat(np.arange(120), 2)
    np.testing.assert_allclose(top.data, every[rows, top.indices], rtol=1e-5)
    lowest = np.sort(every, axis=1)[:, -2]
    assert (top.data >= lowest[rows] * (1 - 1e-5)).all()

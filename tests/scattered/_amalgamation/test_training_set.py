"""Known labels in the order of the vocabulary, and synthetic rows."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.scattered._amalgamation.training_set import (
    auto_augmentation,
    match_known_labels,
    synthetic_rows,
)
from labelweave.scattered._amalgamation.vocabulary import join_vocabularies


def test_known_labels_go_by_name():
    Y = np.array([[1.0, 0.0], [0.0, np.nan]])
    vocabulary = join_vocabularies([["a", "b"], ["b", "e"]])
    frame = pd.DataFrame(Y, columns=["e", "a"])
    known = match_known_labels(frame, 2, vocabulary)
    assert np.array_equal(known[:, [2, 0]], Y, equal_nan=True)
    assert np.isnan(known[:, 1]).all()
    with pytest.raises(InputError, match="'A', which no teacher predicts"):
        match_known_labels(frame.rename(columns={"a": "A"}), 2, vocabulary)


def test_synthetic_rows_are_made_of_numbers():
    rows = np.arange(12.0).reshape(6, 2)
    frame = pd.DataFrame(rows, columns=["x", "y"])
    mixed = [synthetic_rows(X, 30, np.random.RandomState(0)) for X in (rows, frame)]
    assert mixed[1].columns.tolist() == ["x", "y"]
    assert np.array_equal(*(np.asarray(X) for X in mixed))
    assert auto_augmentation(frame) == 5
    assert auto_augmentation(frame.assign(z="text")) == auto_augmentation(["a", "b"]) == 0
    with pytest.raises(InputError, match="set augment=0"):
        synthetic_rows(frame.assign(z="text"), 3, np.random.RandomState(0))


def test_synthetic_sparse_rows_take_each_feature_from_one_of_two_rows():
    X = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 3.0, 4.0, 0.0]])
    mixed = synthetic_rows(sp.csr_array(X), 200, np.random.RandomState(0))
    assert sp.issparse(mixed)
    for column, values in zip(mixed.toarray().T, X.T, strict=True):
        assert set(column) == set(values)

"""What a model folder keeps beside the model: hashes of the rows that were used."""

import numpy as np
import pandas as pd
import scipy.sparse as sp

from labelweave.pipeline import model_folder
from labelweave.pipeline.model_folder import row_hashes


def test_dense_sparse_and_frame_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 7)) * (rng.random((50, 7)) < 0.4)
    numbers = row_hashes(X)
    np.testing.assert_array_equal(row_hashes(sp.csr_array(X)), numbers)
    np.testing.assert_array_equal(row_hashes(sp.csc_array(X)), numbers)
    np.testing.assert_array_equal(row_hashes(pd.DataFrame(X)), numbers)
    np.testing.assert_array_equal(row_hashes(X.astype(np.float32)), numbers)
    np.testing.assert_array_equal(row_hashes(X.reshape(50, 7, 1)), numbers)


def test_different_rows_differ():
    X = np.arange(20_000, dtype=float).reshape(10_000, 2)
    assert len(np.unique(row_hashes(X))) == 10_000
    assert len(np.unique(row_hashes(np.eye(500)))) == 500
    assert row_hashes([[1.0, 2.0]] @ np.eye(2))[0] != row_hashes([[2.0, 1.0]] @ np.eye(2))[0]


def test_chunks_change_nothing(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 4))
    at_once = row_hashes(X)
    monkeypatch.setattr(model_folder, "_CHUNK_ENTRIES", 12)
    np.testing.assert_array_equal(row_hashes(X), at_once)


def test_stored_zeros_and_order_of_entries_are_no_matter():
    plain = sp.csr_array(np.array([[0, 1.0, 2.0]]))
    other = sp.csr_array((np.array([2.0, 0.0, 1.0]), np.array([2, 0, 1]), np.array([0, 3])))
    assert row_hashes(plain)[0] == row_hashes(other)[0]


def test_negative_zero_is_zero():
    assert row_hashes(np.array([[-0.0, 1]]))[0] == row_hashes(np.array([[0.0, 1]]))[0]


def test_texts():
    numbers = row_hashes(["a", "b", "a"])
    assert numbers[0] == numbers[2] != numbers[1]


def test_no_rows():
    assert len(row_hashes(np.empty((0, 3)))) == 0
    assert len(row_hashes(sp.csr_array((0, 3)))) == 0

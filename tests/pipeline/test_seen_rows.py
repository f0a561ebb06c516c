"""Rows as numbers."""

import numpy as np
import pandas as pd
import scipy.sparse as sp

from labelweave.pipeline import seen_rows
from labelweave.pipeline.seen_rows import row_numbers


def test_dense_sparse_and_frame_agree():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 7)) * (rng.random((50, 7)) < 0.4)
    numbers = row_numbers(X)
    np.testing.assert_array_equal(row_numbers(sp.csr_array(X)), numbers)
    np.testing.assert_array_equal(row_numbers(sp.csc_array(X)), numbers)
    np.testing.assert_array_equal(row_numbers(pd.DataFrame(X)), numbers)
    np.testing.assert_array_equal(row_numbers(X.astype(np.float32)), numbers)
    np.testing.assert_array_equal(row_numbers(X.reshape(50, 7, 1)), numbers)


def test_different_rows_differ():
    X = np.arange(20_000, dtype=float).reshape(10_000, 2)
    assert len(np.unique(row_numbers(X))) == 10_000
    assert len(np.unique(row_numbers(np.eye(500)))) == 500
    assert row_numbers([[1.0, 2.0]] @ np.eye(2))[0] != row_numbers([[2.0, 1.0]] @ np.eye(2))[0]


def test_blocks_change_nothing(monkeypatch):
    X = np.random.default_rng(0).normal(size=(30, 4))
    whole = row_numbers(X)
    monkeypatch.setattr(seen_rows, "_CHUNK_ENTRIES", 12)
    np.testing.assert_array_equal(row_numbers(X), whole)


def test_stored_zeros_and_order_of_entries_are_no_matter():
    plain = sp.csr_array(np.array([[0, 1.0, 2.0]]))
    other = sp.csr_array((np.array([2.0, 0.0, 1.0]), np.array([2, 0, 1]), np.array([0, 3])))
    assert row_numbers(plain)[0] == row_numbers(other)[0]


def test_negative_zero_is_zero():
    assert row_numbers(np.array([[-0.0, 1]]))[0] == row_numbers(np.array([[0.0, 1]]))[0]


def test_texts():
    numbers = row_numbers(["a", "b", "a"])
    assert numbers[0] == numbers[2] != numbers[1]


def test_no_rows():
    assert len(row_numbers(np.empty((0, 3)))) == 0
    assert len(row_numbers(sp.csr_array((0, 3)))) == 0

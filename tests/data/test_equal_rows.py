"""Rows that belong together: hashes of rows, equal rows and groups."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelweave.data import equal_rows
from labelweave.data.equal_rows import count_equal_rows, row_hashes, rows_together
from labelweave.data.images.collection import Images
from labelweave.exceptions import InputError
from labelweave.tables import Table


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
    monkeypatch.setattr(equal_rows, "_CHUNK_ENTRIES", 12)
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


def test_numbers_of_a_mixed_table_are_equal_whatever_their_type():
    frame = pd.DataFrame({"price": [1, 1, 2], "brand": ["a", "a", None], "day": pd.NaT})
    numbers = row_hashes(frame)
    assert numbers[0] == numbers[1] != numbers[2]
    for other in (
        frame.astype({"price": "Float64"}),
        frame.astype({"brand": "category"}),
        frame.set_axis([7, 8, 9]),
        Table(frame),
    ):
        np.testing.assert_array_equal(row_hashes(other), numbers)


def test_a_cell_counts_with_its_column_and_a_blank_is_no_text():
    frame = pd.DataFrame({"a": ["x", "y", None, "None"], "b": ["y", "x", "x", "x"]})
    assert len(set(row_hashes(frame).tolist())) == 4


def test_blank_numbers_are_equal_to_each_other():
    assert rows_together(np.array([[np.nan, 1.0], [np.nan, 1.0], [0.0, 1.0]])).tolist() == [0, 0, 1]


def test_texts_without_utf_8():
    assert rows_together(["a\ud800", "a\ud801", "a\ud800"]).tolist() == [0, 1, 0]
    frame = pd.DataFrame({"t": ["a\ud800", "b", "a\ud800"]}, dtype=object)
    assert rows_together(frame).tolist() == [0, 1, 0]


def test_images_are_equal_by_content():
    pixels = np.zeros((3, 4, 4), dtype=np.uint8)
    pixels[1] = 255
    assert rows_together(Images(pixels, size=4)).tolist() == [0, 1, 0]


def test_lists_and_arrays_of_one_axis():
    assert rows_together([[1, 2], [2, 1], [1, 2]]).tolist() == [0, 1, 0]
    assert rows_together(np.array([3, 3, 4])).tolist() == [0, 0, 1]
    assert rows_together(np.array(["a", "b", "a"])).tolist() == [0, 1, 0]
    assert rows_together(np.array([["a", 1], ["a", 1]], dtype=object)).tolist() == [0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_components_agree_with_a_search_from_row_to_row(seed):
    rng = np.random.default_rng(seed)
    X, groups = rng.integers(40, size=(60, 1)), rng.integers(40, size=60)
    together = rows_together(X, groups)
    for start in range(60):
        reached, border = {start}, [start]
        while border:
            row = border.pop()
            near = np.flatnonzero((X[:, 0] == X[row, 0]) | (groups == groups[row]))
            border += [other for other in near if other not in reached]
            reached |= set(near.tolist())
        assert reached == set(np.flatnonzero(together == together[start]).tolist())


def test_groups_of_any_names_and_rows_without_one():
    assert rows_together(groups=["a", 1, None, "a", np.nan, 1.0]).tolist() == [0, 1, 2, 0, 3, 1]


def test_wrong_groups_are_refused():
    with pytest.raises(InputError, match="groups has 1 entries for 2 rows"):
        rows_together(np.eye(2), [1])
    with pytest.raises(InputError, match="pass features or groups"):
        rows_together()


def test_equal_rows_are_counted():
    assert count_equal_rows(sp.csr_array([[1, 0], [1, 0], [0, 1], [0, 0], [0, 0], [0, 0]])) == 5
    assert count_equal_rows(np.eye(3)) == 0

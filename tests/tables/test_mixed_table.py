"""Rows of mixed tables, and what of a table has to be encoded."""

import numpy as np
import pandas as pd
import pytest

import labelweave as lw
from labelweave.rows import concatenate_features
from labelweave.tables.table import numbers_or_table

FRAME = pd.DataFrame({"price": [2.0, np.nan, 1.0], "brand": ["a", "b", None]}, index=[7, 7, 3])


@pytest.mark.parametrize(
    "rows", [slice(1, 3), [1, 2], np.array([False, True, True]), (np.array([1, 2]), ...)]
)
def test_rows_are_taken_by_position(rows):
    taken = lw.Table(FRAME)[rows]
    assert taken.frame["brand"].iloc[0] == "b"
    assert taken.shape == (2, 2)


def test_tables_are_concatenated():
    both = concatenate_features([lw.Table(FRAME)[:1], lw.Table(FRAME)[1:]])
    assert both.frame["brand"].tolist()[:2] == ["a", "b"]


def test_numbers_stay_plain():
    numbers = FRAME[["price"]]
    assert numbers_or_table(numbers, missing_values=True) is numbers
    assert numbers_or_table(lw.Table(numbers), missing_values=True) is numbers
    assert numbers_or_table(numbers.fillna(0), missing_values=False).shape == (3, 1)
    assert isinstance(numbers_or_table(numbers, missing_values=False), lw.Table)
    assert isinstance(numbers_or_table(FRAME, missing_values=True), lw.Table)


def test_a_table_with_settings_is_encoded():
    table = lw.Table(FRAME[["price"]], lw.TableEncoder({"price": "category"}))
    assert numbers_or_table(table, missing_values=True) is table


def test_a_data_set_of_a_table():
    data = lw.Dataset(lw.Table(FRAME), np.eye(3))
    assert data[[2]].X.frame.index.tolist() == [3]
    assert data.n_features == 2


def test_names_of_several_types():
    frame = pd.DataFrame([[1.0, 2.0], [3.0, 4.0]], columns=["a", 1])
    assert list(lw.MLkNN(k=1).fit(frame, [["x"], ["y"]]).feature_names_in_) == ["a", "1"]

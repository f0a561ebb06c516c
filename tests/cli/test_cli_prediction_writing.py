"""Predictions as CSV, JSON Lines and Parquet."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from labelweave.cli.prediction_writing import make_writer, names_by_probability
from labelweave.exceptions import InputError

NAMES = ("a", "b,b", "c")
P = np.array([[0.2, 0.7, 0.9], [0.1, 0.2, 0.3], [0.6, 0.6, 0.1]], dtype=np.float32)


def written(kind, *, every_label=False, separator="|"):
    file = io.BytesIO() if kind == "parquet" else io.StringIO()
    writer = make_writer(kind, file, NAMES, every_label=every_label, separator=separator)
    writer.write(["r1", "r2"], P[:2], P[:2] >= 0.5)
    writer.write(["r3"], P[2:], P[2:] >= 0.5)
    writer.finish()
    return file.getvalue()


def test_most_probable_first_and_ties_by_position():
    names, values = names_by_probability(np.array(NAMES), P, P >= 0.5)
    assert names == [["c", "b,b"], [], ["a", "b,b"]]
    assert values == [[0.9, 0.7], [], [0.6, 0.6]]


def test_no_rows():
    empty = np.empty((0, 3))
    assert names_by_probability(np.array(NAMES), empty, empty > 0) == ([], [])


def test_csv_of_chosen_labels():
    rows = list(csv.reader(io.StringIO(written("csv"))))
    assert rows == [
        ["id", "labels", "probabilities"],
        ["r1", "c|b,b", "0.9|0.7"],
        ["r2", "", ""],
        ["r3", "a|b,b", "0.6|0.6"],
    ]


def test_csv_of_every_label():
    rows = list(csv.reader(io.StringIO(written("csv", every_label=True))))
    assert rows[0] == ["id", "labels", *NAMES]
    assert rows[2] == ["r2", "", "0.1", "0.2", "0.3"]


def test_csv_refuses_a_separator_inside_a_name():
    with pytest.raises(InputError, match=r"'b,b' contains the separator ','"):
        written("csv", separator=",")


def test_jsonl_of_chosen_labels():
    rows = [json.loads(line) for line in written("jsonl").splitlines()]
    assert rows[0] == {
        "id": "r1",
        "labels": ["c", "b,b"],
        "probabilities": {"c": 0.9, "b,b": 0.7},
    }
    assert rows[1] == {"id": "r2", "labels": [], "probabilities": {}}


def test_jsonl_of_every_label():
    rows = [json.loads(line) for line in written("jsonl", every_label=True).splitlines()]
    assert rows[1]["probabilities"] == {"a": 0.1, "b,b": 0.2, "c": 0.3}


def test_csv_of_columns():
    rows = list(csv.reader(io.StringIO(written("csv-columns"))))
    assert rows == [
        ["id", *NAMES],
        ["r1", "0", "1", "1"],
        ["r2", "0", "0", "0"],
        ["r3", "1", "1", "0"],
    ]
    with pytest.raises(InputError, match="no place for probabilities"):
        written("csv-columns", every_label=True)
    with pytest.raises(InputError, match="'id' would be a second column"):
        make_writer("csv-columns", io.StringIO(), ["id"], every_label=False, separator="|")


def test_parquet():
    pytest.importorskip("pyarrow")
    lists = pd.read_parquet(io.BytesIO(written("parquet")))
    assert lists["id"].tolist() == ["r1", "r2", "r3"]
    assert [list(row) for row in lists["labels"]] == [["c", "b,b"], [], ["a", "b,b"]]
    assert [list(row) for row in lists["probabilities"]] == [[0.9, 0.7], [], [0.6, 0.6]]
    columns = pd.read_parquet(io.BytesIO(written("parquet", every_label=True)))
    np.testing.assert_allclose(columns[list(NAMES)], P, atol=1e-6)


def test_whole_numbers_stay_ids_of_parquet():
    pytest.importorskip("pyarrow")
    file = io.BytesIO()
    writer = make_writer("parquet", file, NAMES, every_label=False, separator="|")
    writer.write([7, 8, 9], P, P >= 0.5)
    with pytest.raises(InputError, match="some row ids are whole numbers"):
        writer.write(["x", "y", "z"], P, P >= 0.5)
    writer.finish()
    assert pd.read_parquet(file)["id"].tolist() == [7, 8, 9]

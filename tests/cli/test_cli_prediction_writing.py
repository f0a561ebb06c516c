"""Predictions as CSV and JSON Lines."""

import csv
import io
import json

import numpy as np
import pytest

from labelweave.cli.prediction_writing import make_writer, names_by_probability
from labelweave.exceptions import InputError

NAMES = ("a", "b,b", "c")
P = np.array([[0.2, 0.7, 0.9], [0.1, 0.2, 0.3], [0.6, 0.6, 0.1]], dtype=np.float32)


def written(kind, *, every_label=False, separator="|"):
    file = io.StringIO()
    writer = make_writer(kind, file, NAMES, every_label=every_label, separator=separator)
    writer.write(["r1", "r2"], P[:2], P[:2] >= 0.5)
    writer.write(["r3"], P[2:], P[2:] >= 0.5)
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

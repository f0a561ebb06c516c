"""Verdicts: reading them, matching them with the data, applying them."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave.data.corrections import Verdict, Verdicts, apply_corrections, read_verdicts
from labelweave.exceptions import DataFileError, InputError


@pytest.fixture
def data():
    Y = np.array([[1, 0], [0, np.nan], [0, 0]])
    return lw.Dataset(np.eye(3), lw.as_labels(Y, names=["sea", "sun"]), name="days")


def write(path, text):
    path.write_text(text)
    return path


def test_yes_no_unsure(tmp_path, data):
    path = write(
        tmp_path / "v.csv",
        "row,id,label,verdict\n0,,sun,yes\n1,,sun,no\n2,,sea,unsure\n0,,sea,No \n2,,sun,\n",
    )
    corrected = apply_corrections(data, path).Y.to_numpy()
    np.testing.assert_array_equal(corrected, [[0, 1], [0, 0], [0, 0]])
    assert np.isnan(data.Y.to_numpy()[1, 1])  # what was given stays
    assert read_verdicts(path).counts() == {"yes": 1, "no": 2, "unsure": 1}


def test_verdicts_in_json_lines(tmp_path, data):
    lines = [
        {"row": 0, "label": "sun", "verdict": "yes"},
        {"row": 1, "label": "sun", "verdict": None},
    ]
    path = write(tmp_path / "v.jsonl", "\n".join(map(json.dumps, lines)) + "\n")
    assert lw.apply_corrections(data, path).Y.to_lists() == [["sea", "sun"], [], []]


@pytest.mark.parametrize("absent", ["negative", "unknown"])
def test_sparse_labels_stay_sparse(absent):
    Y = lw.as_labels(sp.csr_array(np.array([[1.0, 0], [0, 1]])), names="ab", absent=absent)
    verdicts = Verdicts([Verdict(0, "", "b", "yes"), Verdict(1, "", "b", "no")])
    corrected = apply_corrections(lw.Dataset(np.eye(2), Y), verdicts).Y
    assert corrected.is_sparse
    blank = 0.0 if absent == "negative" else np.nan
    np.testing.assert_array_equal(corrected.to_numpy(), [[1, 1], [blank, 0]])


def test_rows_are_found_by_their_ids():
    data = lw.Dataset(np.eye(2), [["a"], ["b"]], row_ids=["x", "y"])
    verdicts = Verdicts([Verdict(0, "y", "a", "yes")])
    assert apply_corrections(data, verdicts).Y.to_lists() == [["a"], ["a", "b"]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("3,,sun,yes", "line 2: there is no row 3 in days, which has 3 rows"),
        ("0,,moon,yes", "line 2: days has no label 'moon'"),
        ("0,,sun,maybe", "line 2: the verdict 'maybe' is not one of yes, no, unsure"),
        ("one,,sun,yes", "line 2: the row 'one' is not a whole number"),
        (",,sun,yes", "line 2: the verdict has no row number"),
        ("0,,,yes", "line 2: the verdict has no label"),
        ("0,,sun,yes\n0,,sun,no", "line 3: row 0 has two verdicts on 'sun', yes and no"),
        ("0,,sun,", "the file holds no verdict"),
    ],
)
def test_verdicts_that_do_not_match_the_data(tmp_path, data, line, message):
    path = write(tmp_path / "v.csv", f"row,id,label,verdict\n{line}\n")
    with pytest.raises(DataFileError, match=message):
        apply_corrections(data, path)


def test_files_without_verdicts(tmp_path, data):
    with pytest.raises(DataFileError, match="no such file"):
        read_verdicts(tmp_path / "none.csv")
    with pytest.raises(DataFileError, match=r"a \.csv or a \.jsonl file"):
        read_verdicts(write(tmp_path / "v.txt", ""))
    with pytest.raises(DataFileError, match="no column 'label'"):
        read_verdicts(write(tmp_path / "v.csv", "row,verdict\n0,yes\n"))
    with pytest.raises(DataFileError, match="line 2: this is not valid JSON"):
        read_verdicts(write(tmp_path / "v.jsonl", '{"row": 0, "label": "a", "verdict": "no"}\n{'))
    with pytest.raises(InputError, match="has no row 'z'"):
        named = lw.Dataset(np.eye(2), [["a"], ["b"]], row_ids=["x", "y"])
        apply_corrections(named, Verdicts([Verdict(0, "z", "a", "yes")]))

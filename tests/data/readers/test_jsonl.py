import json

import numpy as np
import pytest

from labelweave.data.readers._shared.label_lists import label_matrix
from labelweave.data.readers.jsonl import read_jsonl
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError, LabelweaveWarning

FILE = "notes.jsonl"

RECORDS = [
    {"id": "a", "title": "Waves", "abstract": "Of the sea.", "topics": ["sea"], "split": "TRAIN"},
    {"id": "b", "title": "Beach", "abstract": None, "topics": ["sea", "sun"], "split": "dev"},
    {"id": "c", "title": "", "abstract": "Größe \u2014", "topics": [], "split": "other"},
    {"id": "d", "title": "Who knows", "split": "test"},
]


def test_jsonl(write):
    data = read_dataset(write(RECORDS))
    assert data.X == ["Waves\nOf the sea.", "Beach", "Größe —", "Who knows"]
    assert data.label_names == ("sea", "sun")
    nan = np.nan
    np.testing.assert_array_equal(data.Y.to_numpy(), [[1, 0], [1, 1], [0, 0], [nan, nan]])
    assert data.row_ids == ["a", "b", "c", "d"]
    assert list(data.part) == ["train", "validation", "other", "test"]


def test_jsonl_named_fields(write):
    records = [{"q": "one", "r": "two", "x": ["a"], "y": "b", "n": 7}]
    data = read_jsonl(
        write(records), text_column=["r", "q"], label_column=["x", "y"], id_column="n"
    )
    assert (data.X, data.Y.to_lists(), data.row_ids) == (["two\none"], [["a", "b"]], [7])
    with pytest.raises(DataFileError, match="no field looks like text"):
        read_jsonl(write(records), text_only=True)
    with pytest.raises(DataFileError, match="no row has the field 'z'"):
        read_jsonl(write(records), text_column="z")
    with pytest.raises(DataFileError, match="label_column="):
        read_jsonl(write(records), text_column="q", text_only=True)
    data = read_jsonl(write(records), text_column="q", text_only=True, require_labels=False)
    assert data.Y.shape == (1, 0)


PRODUCTS = [
    {"id": 1, "title": "Big", "text": "sea boat", "price": 2.5, "brand": "a", "tags": ["x"]},
    {"id": 2, "text": "sun hat", "price": None, "brand": "b", "new": True, "tags": []},
    {"id": 3, "text": "sea hat", "price": 4, "brand": "a", "sizes": [1, 2]},
]


def test_further_fields_are_columns(write):
    with pytest.warns(LabelweaveWarning, match="these fields are left out: sizes"):
        data = read_dataset(write(PRODUCTS))
    frame = data.X.frame
    assert list(frame.columns) == data.feature_names == ["text", "price", "brand", "new"]
    assert frame["text"].tolist() == ["Big\nsea boat", "sun hat", "sea hat"]
    np.testing.assert_array_equal(frame["price"], [2.5, np.nan, 4])
    np.testing.assert_array_equal(data.Y.to_numpy(), [[1], [0], [np.nan]])
    assert data.row_ids == [1, 2, 3]
    batches = iter_batches(
        write(PRODUCTS), batch_rows=2, feature_names=data.feature_names, is_table=True
    )
    with pytest.warns(LabelweaveWarning, match="'sizes' was not in the training table"):
        first = next(batches).X.frame
    assert first["text"].tolist() == ["Big\nsea boat", "sun hat"]
    assert first["brand"].tolist() == ["a", "b"]
    assert frame["text"].tolist() == read_dataset(write(PRODUCTS), text_only=True).X
    some = read_dataset(write(PRODUCTS), drop=["sizes", "new", "brand"])
    assert some.feature_names == ["text", "price"]


def test_records_with_a_field_per_label(write):
    records = [{"a": 1, "b": 2.5, "is_x": 1, "is_y": None}, {"a": 3, "b": 4, "is_x": 0, "is_y": 1}]
    for content in (records, json.dumps(records)):
        data = read_dataset(write(content), labels="is_*")
        assert data.X.tolist() == [[1, 2.5], [3, 4]]
        np.testing.assert_array_equal(data.Y.to_numpy(), [[1, np.nan], [0, 1]])
    with pytest.raises(DataFileError, match=r"notes.jsonl, line 1: the label column 'a' holds 7"):
        read_dataset(write([{"a": 7, "b": 1}]), labels=["a"])


def test_options_that_need_further_fields(write):
    records = [{"text": "a", "labels": ["x"]}]
    with pytest.raises(DataFileError, match="no fields besides texts and labels for kinds="):
        read_dataset(write(records), kinds={"text": "text"})
    with pytest.raises(DataFileError, match="no row has the field 'z'"):
        read_dataset(write(records), drop=["z"])


def test_jsonl_vocabulary(write):
    data = read_jsonl(write(RECORDS), labels=["sun", "moon", "sea"])
    assert data.label_names == ("sun", "moon", "sea")
    with pytest.raises(DataFileError, match="line 2: the label 'sun' is not among"):
        read_jsonl(write(RECORDS), labels=["sea"])


def test_descriptions_from_a_file_in_the_same_folder(write):
    write('{"topics": {"sea": "Salt water", "moon": "At night"}}', "labels.json")
    assert read_jsonl(write(RECORDS)).Y.descriptions == {"sea": "Salt water"}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{"text": "a", "labels": []}\n{"text": \n', 2, "not valid JSON"),
        ('{"text": "a", "labels": ["x"]}\n[1]\n', 2, "expected a JSON object"),
        ('{"text": "a", "labels": ["x"]}\n\n{"text": 3}\n', 3, "'text' is not a text"),
        ('{"text": "a", "labels": {"x": 1}}\n', 1, "must be a list"),
        ('{"text": "a", "labels": [["x"]]}\n', 1, "must be a list"),
        ('{"text": "a", "labels": []}\n', None, "no row has a label"),
        ("\n", None, "no rows"),
        ('{"text": "a", "labels": ' + "[" * 100_000 + "\n", 1, "not valid JSON"),
    ],
)
def test_jsonl_mistakes(write, text, line, message):
    with pytest.raises(DataFileError, match=message) as caught:
        read_jsonl(write(text))
    assert caught.value.line == line


def test_lone_surrogates_become_replacement_characters(write):
    data = read_jsonl(write('{"text": "a\\ud800b", "labels": ["x"]}\n'))
    assert data.X == ["a\ufffdb"]


def test_many_labels_with_unknown_rows_stay_sparse():
    names = [f"n{j}" for j in range(100)]
    matrix = label_matrix([["n3"], None, []], names, "f")
    assert matrix.nnz == 101
    assert np.isnan(matrix.toarray()[1]).all()
    assert matrix.toarray()[0].sum() == 1


def test_jsonl_batches(write):
    batches = list(iter_batches(write(RECORDS), batch_rows=3))
    assert [batch.X for batch in batches] == [
        ["Waves\nOf the sea.", "Beach", "Größe —"],
        ["Who knows"],
    ]
    assert batches[1].row_ids == ["d"]
    assert batches[0].Y.shape == (3, 0)


def test_fields_that_are_left_out_are_said(write):
    lines = [
        {"text": f"waves no {i}", "price": i, "brand": "ab"[i % 2], "tags": ["x"]} for i in range(6)
    ]
    path = write("".join(json.dumps(line) + "\n" for line in lines))
    data = read_jsonl(path, drop=["brand"])
    assert data.feature_names == ["text", "price"]
    assert data.facts["not_features"] == {"brand": "dropped, as asked"}
    options = {"feature_names": ["text", "price"], "is_table": True}
    with pytest.warns(LabelweaveWarning, match="the column 'brand' was not in the training table"):
        list(iter_batches(path, **options))
    assert len(list(iter_batches(path, **options, drop=["brand"]))) == 1

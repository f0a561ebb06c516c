import numpy as np
import pytest

from labelweave.data.readers._shared.label_lists import label_matrix
from labelweave.data.readers.jsonl import read_jsonl
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError

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
        read_jsonl(write(records))
    with pytest.raises(DataFileError, match="no row has the field 'z'"):
        read_jsonl(write(records), text_column="z")
    with pytest.raises(DataFileError, match="label_column="):
        read_jsonl(write(records), text_column="q")
    assert read_jsonl(write(records), text_column="q", require_labels=False).Y.shape == (1, 0)


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

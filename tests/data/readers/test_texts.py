"""JSON Lines, fastText lines and label files."""

import json

import numpy as np
import pytest

from labelweave.data.readers.fasttext import read_fasttext
from labelweave.data.readers.jsonl import read_jsonl
from labelweave.data.readers.label_lists import label_matrix, read_label_file
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError, InputError


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="notes.jsonl"):
        path = tmp_path / name
        if not isinstance(content, str):
            content = "".join(json.dumps(record) + "\n" for record in content)
        path.write_text(content, encoding="utf-8")
        return path

    return to_file


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


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("labels.json", '{"sea": "Salt water", "moon": "At night"}'),
        ("labels.json", '{"topics": {"sea": "Salt water"}, "places": {"sea": "wrong"}}'),
        ("labels.jsonl", '{"label": "sea", "description": "Salt water"}\n'),
        ("labels.json", '[{"id": "sea", "name": "Salt water"}, "sun"]'),
    ],
)
def test_descriptions_beside(write, name, content):
    write(content, name)
    assert read_jsonl(write(RECORDS)).Y.descriptions == {"sea": "Salt water"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("labels.json", "{", "not valid JSON"),
        ("labels.json", "3", "expected a list"),
        ("labels.json", "[3]", "has no name"),
        ("labels.json", '["a", "a"]', "each of them once"),
        ("labels.txt", "\n", "each of them once"),
    ],
)
def test_bad_label_files(write, name, content, message):
    with pytest.raises(DataFileError, match=message):
        read_label_file(write(content, name))


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('{"text": "a", "labels": []}\n{"text": \n', 2, "not valid JSON"),
        ('{"text": "a", "labels": ["x"]}\n[1]\n', 2, "expected an object"),
        ('{"text": "a", "labels": ["x"]}\n\n{"text": 3}\n', 3, "'text' is no text"),
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


FASTTEXT = "__label__sea __label__sun a  beach\n\nno label\nlate one __label__sea\n"


def test_fasttext(write):
    data = read_dataset(write(FASTTEXT, "notes.txt"))
    assert data.X == ["a beach", "no label", "late one"]
    assert data.Y.to_lists() == [["sea", "sun"], [], ["sea"]]
    other = read_fasttext(write("#a x\n#b #a y\n", "notes.txt"), label_prefix="#")
    assert other.Y.to_lists() == [["a"], ["a", "b"]]


def test_fasttext_mistakes(write):
    with pytest.raises(DataFileError, match="no line has a word that begins with __label__"):
        read_dataset(write("just text\n", "notes.txt"))
    with pytest.raises(DataFileError, match="line 2: __label__ is followed by no name"):
        read_fasttext(write("__label__a x\n__label__ y\n"))
    with pytest.raises(DataFileError, match="no rows"):
        read_fasttext(write("\n\n"))
    with pytest.raises(DataFileError, match="line 1: the label 'a' is not among the 1"):
        read_fasttext(write("__label__a x\n"), labels=["b"])
    with pytest.raises(InputError, match="label_prefix="):
        read_fasttext(write("a\n"), label_prefix="")
    with pytest.raises(InputError, match="labels= must be the list"):
        read_fasttext(write("__label__a x\n"), labels=3)


def test_fasttext_batches_take_plain_texts(write):
    lines = "".join(f"text {i}\n" for i in range(2500))
    batches = list(iter_batches(write(lines, "notes.txt"), batch_rows=1000))
    assert [len(batch) for batch in batches] == [1000, 1000, 500]
    assert batches[2].X[-1] == "text 2499"

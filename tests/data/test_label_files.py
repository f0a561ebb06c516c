import pytest

from labelweave.data.label_files import read_label_file
from labelweave.exceptions import DataFileError


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", "label,description\nsea,salt water\nsun,\n"),
        ("a.tsv", "Tag\tDefinition\nsea\tsalt water\nsun\t\n"),
        ("a.json", '{"sea": "salt water", "sun": ""}'),
        ("a.json", '{"topics": {"sea": "salt water", "sun": ""}, "places": {"sea": "wrong"}}'),
        ("a.json", '[{"id": "sea", "name": "salt water"}, "sun"]'),
        ("a.jsonl", '{"label": "sea", "description": "salt water"}\n\n{"tag": "sun"}\n'),
    ],
)
def test_names_and_descriptions(tmp_path, name, content):
    (tmp_path / name).write_text(content)
    labels = read_label_file(tmp_path / name, field="topics")
    assert labels == {"sea": "salt water", "sun": ""}


def test_names_only(tmp_path):
    (tmp_path / "names.txt").write_text("sea\n\n deep sun \n")
    assert read_label_file(tmp_path / "names.txt") == {"sea": "", "deep sun": ""}
    (tmp_path / "names.jsonl").write_text('{"label": 7, "name": "seven", "text": "a number"}')
    assert read_label_file(tmp_path / "names.jsonl") == {"7": "seven: a number"}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.csv", "word,meaning\nx,y\n", "no column label or name or tag"),
        ("a.csv", "label\nx\nx\n", "line 3: the label 'x' is listed twice"),
        ("a.csv", "label,description\n,text\n", "line 2: the label has no name"),
        ("a.jsonl", '{"label": "x"}\n[1]\n', "line 2: expected a label name or an object"),
        ("a.jsonl", "{", "line 1: this is not valid JSON"),
        ("a.json", "{", "not valid JSON"),
        ("a.json", "3", "expected a list"),
        ("a.json", "[3]", "expected a label name or an object .*not 3"),
        ("a.json", '["a", "a"]', "the label 'a' is listed twice"),
        ("a.txt", "\n\n", "holds no labels"),
    ],
)
def test_mistakes(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(DataFileError, match=message):
        read_label_file(tmp_path / name)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataFileError, match="there is no such file"):
        read_label_file(tmp_path / "none.csv")
    (tmp_path / "a.txt").write_bytes(b"\xff")
    with pytest.raises(DataFileError, match="not UTF-8"):
        read_label_file(tmp_path / "a.txt")

import gzip

import pytest

from labelweave.data.reading import iter_batches, read_dataset
from labelweave.data.text_encodings import likely_encoding
from labelweave.exceptions import DataFileError, InputError

TEXT = "naïve café,größe,sea\n1.5,2,1\n2,3,0\n"


@pytest.mark.parametrize("encoding", ["cp1252", "latin-1", "utf-16", "utf-16-le", "UTF-8", "utf8"])
def test_a_table_in_another_encoding(tmp_path, encoding):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode(encoding)))
    data = read_dataset(path, labels=1, encoding=encoding)
    assert data.feature_names == ["naïve café", "größe"]
    assert data.X.tolist() == [[1.5, 2], [2, 3]]
    batches = iter_batches(path, feature_names=["größe"], encoding=encoding)
    assert next(batches).X.tolist() == [[2], [3]]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.jsonl", '{"text": "café", "labels": ["é"]}\n'),
        ("data.json", '[{"text": "café", "labels": ["é"]}]'),
        ("data.txt", "__label__é café\n"),
        ("data.arff", "@relation r\n@attribute t string\n@attribute é {0,1}\n@data\n'café',1\n"),
    ],
)
def test_other_formats(tmp_path, name, text):
    path = tmp_path / name
    path.write_bytes(text.encode("cp1252"))
    options = {"labels": 1, "text_column": "t"} if name.endswith("arff") else {}
    data = read_dataset(path, encoding="cp1252", **options)
    assert (list(data.X), data.label_names) == (["café"], ("é",))
    if not name.endswith("arff"):  # which is read as Latin-1 where it is not UTF-8
        with pytest.raises(DataFileError, match="encoding is probably cp1252; say so with encod"):
            read_dataset(path, **options)


def test_the_message_names_the_line(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"text,tags\n" + b"sea,a\n" * 5000 + "größe,b\n".encode("cp1252"))
    with pytest.raises(DataFileError, match="byte 3 of the line is not UTF-8") as caught:
        read_dataset(path)
    assert caught.value.line == 5002
    assert caught.value.parameters == ("encoding",)


def test_wrong_encodings(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(TEXT.encode("cp1252"))
    with pytest.raises(DataFileError, match="near byte 3 the file is not ascii text"):
        read_dataset(path, labels=1, encoding="ascii")
    for wrong in ("klingon", "base64", "x" * 500, "a\0b"):
        with pytest.raises(InputError, match="there is no encoding"):
            read_dataset(path, labels=1, encoding=wrong)


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("Straße, Äpfel und Öl", "cp1252"),
        ("“quoted” naïve", "cp1252"),
        ("погода сегодня хорошая", "cp1251"),
        ("今天天气很好", "gb18030"),
        ("今日はいい天気ですね", "shift_jis"),
        ("sea", "utf-16"),
        ("sea", "utf-16-le"),
        ("sea", "utf-32"),
    ],
)
def test_likely_encoding(text, encoding):
    assert likely_encoding(text.encode(encoding)) == encoding

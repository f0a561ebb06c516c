import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.data import json_arrays
from labelweave.data.json_arrays import iter_json_array
from labelweave.data.reading import read_dataset
from labelweave.exceptions import DataFileError

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
)


@settings(max_examples=60)
@given(
    st.lists(st.dictionaries(st.text(max_size=4), values, max_size=3), max_size=6),
    st.sampled_from([None, 0, 2]),
    st.booleans(),
    st.integers(1, 40),
)
def test_elements_are_those_of_json(tmp_path, monkeypatch, records, indent, ascii, size):
    monkeypatch.setattr(json_arrays, "_BLOCK_BYTES", size)
    path = tmp_path / "data.json"
    path.write_text(json.dumps(records, indent=indent, ensure_ascii=ascii), errors="ignore")
    assert [value for _, value in iter_json_array(path)] == json.loads(path.read_text())


def test_lines(tmp_path):
    path = tmp_path / "data.json"
    path.write_text('\n[\n {"a": 1},\n\n {"a":\n 2}\n]\n')
    assert list(iter_json_array(path)) == [(3, {"a": 1}), (5, {"a": 2})]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[{"text": "a"}\n{"text": "b"}]', 2, "expected a comma between two elements"),
        ('[{"text": "a"},\n{"text": }]', 2, "not valid JSON"),
        ('[{"text": "a"},\n', 2, "not valid JSON"),
        ('[{"text": "a"}]\n1', 2, "more text after the array"),
        ('[{"text": "a"},\n 3]', 2, "expected a JSON object"),
        ('[{"text": ' + "[" * 100_000, 1, "not valid JSON"),
        ("[]", None, "no rows"),
    ],
)
def test_mistakes(tmp_path, text, line, message):
    path = tmp_path / "data.json"
    path.write_text(text)
    with pytest.raises(DataFileError, match=message) as caught:
        read_dataset(path, require_labels=False)
    assert caught.value.line == line


def test_an_array_of_records(tmp_path):
    path = tmp_path / "records"
    path.write_text('[{"text": "waves", "tags": ["sea"]}, {"text": "heat", "tags": ["sun"]}]')
    data = read_dataset(path)
    assert (data.X, data.Y.to_lists()) == (["waves", "heat"], [["sea"], ["sun"]])

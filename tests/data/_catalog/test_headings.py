"""Records with subject headings: label names from their own file, sparse from the first record."""

import json

import pytest

from labelweave.data import catalog
from labelweave.data.catalog import load_dataset
from labelweave.exceptions import DataFileError

LABELS = [
    {"label": "sea", "description": "sea; ocean"},
    {"label": "sun", "description": "sun"},
    {"label": "moon", "description": "moon"},
]
RECORDS = [
    {"text": "Later waves", "labels": ["sea"], "split": "test"},
    {"text": "Waves and light", "labels": ["sun", "sea", "sun"], "split": "train"},
    {"text": "Nothing", "labels": [], "split": "train"},
]


@pytest.fixture
def write(tiny_entry, monkeypatch, tmp_path):
    def write(records):
        entry = tiny_entry(
            kind="text",
            rows=3,
            features=None,
            labels=3,
            parts={"train": 2, "test": 1},
            loader="headings",
            files={"all": "documents.jsonl"},
            extra_files=("labels.jsonl",),
        )
        folder = tmp_path / "tiny"
        folder.mkdir()
        for name, rows in (("documents", records), ("labels", LABELS)):
            (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        monkeypatch.setenv("LABELWEAVE_DATA", str(tmp_path))
        monkeypatch.setattr(catalog, "_catalog", lambda: {entry.name: entry})

    return write


def test_labels_are_those_of_the_labels_file_in_its_order(write):
    write(RECORDS)
    data = load_dataset("tiny")
    assert data.label_names == ("sea", "sun", "moon")
    assert data.Y.is_sparse
    assert data.X == ["Waves and light", "Nothing", "Later waves"]  # training rows first
    assert data.Y.to_lists() == [["sea", "sun"], [], ["sea"]]
    assert data.part.tolist() == ["train", "train", "test"]
    assert data.Y.descriptions == {"sea": "sea; ocean"}  # a name is not its own description


def test_a_label_that_is_not_in_the_labels_file_is_refused(write):
    write([*RECORDS[:2], {"text": "Red", "labels": ["mars"], "split": "train"}])
    with pytest.raises(DataFileError, match=r"the label 'mars' is not in labels\.jsonl"):
        load_dataset("tiny")

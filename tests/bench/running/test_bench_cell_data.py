"""The data of a cell: checksums, external folders, and what a process keeps."""

import numpy as np
import scipy.sparse as sp
from bench_data import small_suite, write_data

from labelweave.bench.running import cell_data
from labelweave.bench.running.cell_data import checksum, load, why_missing
from labelweave.bench.running.plan import all_cells
from labelweave.bench.running.worker import data_checksum
from labelweave.bench.suite import DataEntry
from labelweave.data import Dataset


def test_a_checksum_sees_features_labels_names_and_parts():
    X, Y = np.arange(12.0).reshape(6, 2), np.eye(6)[:, :2]
    first = checksum(Dataset(X, Y))
    assert checksum(Dataset(X.copy(), Y.copy(), name="same")) == first
    changed = X.copy()
    changed[3, 1] += 1e-9
    for other in (
        Dataset(changed, Y),
        Dataset(X, 1 - Y),
        Dataset(X, Y, part=["train"] * 3 + ["test"] * 3),
        Dataset(X, Y, groups=list("aabbcc")),
        Dataset(X[:5], Y[:5]),
        Dataset(["text"] * 6, Y),
        Dataset(["texts"] * 6, Y),
    ):
        assert checksum(other) != first


def test_a_checksum_of_sparse_data_does_not_depend_on_the_order_of_storage():
    dense = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    a = sp.csr_array(dense)
    b = sp.csr_array((a.data[[1, 0, 2]], a.indices[[1, 0, 2]], a.indptr), a.shape)
    Y = np.eye(2)
    assert checksum(Dataset(a, Y)) == checksum(Dataset(b, Y))


def test_external_data_are_found_once_they_are_there(tmp_path, monkeypatch):
    monkeypatch.setenv("LABELWEAVE_DATA", str(tmp_path))
    entry = DataEntry("my-images", external="photographs of mine")
    assert "photographs of mine" in why_missing(entry)
    folder = tmp_path / "my-images"
    folder.mkdir()
    for part, n_rows in (("train", 30), ("test", 10)):
        line = '{"text": "a photo", "labels": ["red"]}'
        (folder / f"{part}.jsonl").write_text("\n".join([line] * n_rows))
    assert why_missing(entry) is None
    data = load(entry)
    assert data.name == "my-images"
    assert [str(part) for part in sorted(set(data.part))] == ["test", "train"]
    assert len(data) == 40


def test_a_changed_file_makes_other_cells(tmp_path):
    suite = small_suite(tmp_path, names=("one",))
    cell = all_cells(suite)[0]
    before = data_checksum(cell)
    write_data(tmp_path / "one.csv", seed=9)
    cell_data._kept.clear()  # a new process
    assert data_checksum(cell) != before


def test_no_more_data_are_held_than_allowed(tmp_path, monkeypatch):
    suite = small_suite(tmp_path, names=("one", "two"))
    one, two = suite.data
    first, second = cell_data.load(one), cell_data.load(two)
    assert cell_data.load(one) is first
    monkeypatch.setattr(cell_data, "_MOST_KEPT", 1)  # none but the last
    assert cell_data.load(two) is second
    assert cell_data.load(one) is not first

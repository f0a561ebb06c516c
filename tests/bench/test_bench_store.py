"""The folder of results, claims on cells, checksums of data, and what a cell costs."""

import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse as sp
from bench_data import make_record, small_suite, write_data

from labelweave.bench.running.cell_data import checksum, load, why_missing
from labelweave.bench.running.measuring import Meter, bounded_threads
from labelweave.bench.running.plan import all_cells
from labelweave.bench.storing.claims import STALE_AFTER, claimed, is_claimed
from labelweave.bench.storing.records import SCHEMA
from labelweave.bench.storing.store import Store, read_results
from labelweave.bench.suite import DataEntry
from labelweave.data import Dataset
from labelweave.exceptions import DataFileError, InputError


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path / "results")
    store.create()
    return store


@pytest.fixture
def records(suite):
    return [make_record(cell, {"map": 0.1 * i}) for i, cell in enumerate(all_cells(suite))]


def test_records_come_back_whole(store, records):
    record = {**records[0], "history": {"epoch": [1, 2]}, "artifacts": {"a": 1}}
    store.write(record)
    assert read_results(store.folder) == [record]
    assert store.names() == {record["cell"]}


def test_summaries_leave_out_what_only_plots_need(store, records):
    for record in records:
        store.write({**record, "history": {"epoch": [1]}})
    found = read_results(store.folder, full=False)
    assert [one["cell"] for one in found] == sorted(one["cell"] for one in records)
    assert all(one["history"] is None for one in found)


def test_the_index_is_only_a_cache(store, records, monkeypatch):
    monkeypatch.setattr("labelweave.bench.storing.store._INDEX_WORTH", 1)
    for record in records:
        store.write(record)
    store.summaries()
    index = store.folder / "index.json"
    assert index.exists()
    # A replaced, a removed and a new cell are noticed.
    changed = {**records[0], "scores": {"map": 0.99}, "suite": "another suite"}
    store.write(changed)
    store.path(records[1]["cell"]).unlink()
    found = {one["cell"]: one for one in store.summaries()}
    assert found[records[0]["cell"]]["scores"] == {"map": 0.99}
    assert records[1]["cell"] not in found
    assert len(found) == len(records) - 1
    index.write_text("{ not json")
    assert len(store.summaries()) == len(records) - 1


def test_summaries_are_read_from_the_index(store, records, monkeypatch):
    monkeypatch.setattr("labelweave.bench.storing.store._INDEX_WORTH", 1)
    for record in records:
        store.write(record)
    store.summaries()
    monkeypatch.setattr(Store, "read", lambda *_: pytest.fail("the file of a cell was opened"))
    assert len(store.summaries()) == len(records)


def test_strange_folders_are_refused(tmp_path, store, records):
    with pytest.raises(InputError, match="no folder of results"):
        read_results(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds other files"):
        Store(tmp_path / "other").create()
    (store.folder / "store.json").write_text(json.dumps({"schema": 99, "id": "x"}))
    with pytest.raises(InputError, match="another version"):
        store.id()


def test_half_a_cell_is_told(store):
    store.path("abc").write_text('{"cell": ')
    with pytest.raises(DataFileError, match="delete it"):
        store.records()


# -- claims --------------------------------------------------------------------------------


def test_a_claim_is_held_by_one(tmp_path):
    path = tmp_path / "cell"
    with claimed(path) as mine:
        assert mine
        assert is_claimed(path)
        with claimed(path) as again:
            assert not again
        assert path.exists()  # who did not get it does not take it away
    assert not path.exists()


def test_the_claim_of_a_dead_process_is_taken_over(tmp_path):
    path = tmp_path / "cell"
    code = (
        "from pathlib import Path; from labelweave.bench.storing.claims import _take; "
        f"_take(Path({str(path)!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert path.exists()
    assert not is_claimed(path)
    with claimed(path) as mine:
        assert mine


def test_a_number_of_a_process_that_is_used_again_is_noticed(tmp_path):
    path = tmp_path / "cell"
    with claimed(path):
        owner = json.loads(path.read_text())
        path.write_text(json.dumps({**owner, "begun": "1"}))
        assert not is_claimed(path)


def test_the_claim_of_another_machine_counts_while_it_is_fresh(tmp_path):
    path = tmp_path / "cell"
    path.write_text(json.dumps({"host": "elsewhere", "process": 1, "begun": "1"}))
    assert is_claimed(path)
    old = time.time() - STALE_AFTER - 1
    os.utime(path, (old, old))
    assert not is_claimed(path)


def test_half_a_claim_counts_for_a_moment(tmp_path):
    path = tmp_path / "cell"
    path.write_text("")
    assert is_claimed(path)
    os.utime(path, (0, 0))
    assert not is_claimed(path)


# -- data ----------------------------------------------------------------------------------


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
    from labelweave.bench.running.cell_data import _kept
    from labelweave.bench.running.worker import data_checksum

    suite = small_suite(tmp_path, names=("one",))
    cell = all_cells(suite)[0]
    before = data_checksum(cell)
    write_data(tmp_path / "one.csv", seed=9)
    _kept.clear()  # a new process
    assert data_checksum(cell) != before


def test_no_more_data_are_held_than_allowed(tmp_path, monkeypatch):
    from labelweave.bench.running import cell_data

    suite = small_suite(tmp_path, names=("one", "two"))
    one, two = suite.data
    first, second = cell_data.load(one), cell_data.load(two)
    assert cell_data.load(one) is first
    monkeypatch.setattr(cell_data, "_MOST_KEPT", 1)  # none but the last
    assert cell_data.load(two) is second
    assert cell_data.load(one) is not first


# -- costs ---------------------------------------------------------------------------------


def test_a_meter_sees_the_peak_of_its_own_block():
    with Meter() as big:
        block = np.ones(30_000_000)  # 240 MB, gone before the next
        del block
    with Meter() as small:
        pass
    assert big.memory["peak"] - big.memory["before"] > 200
    if small.memory["how"] == "per cell":
        assert small.memory["peak"] < big.memory["peak"] - 100
    assert big.seconds(1.0)["fit"] == 1.0
    assert big.wall > small.wall >= 0


def test_threads_are_bounded_inside_and_given_back():
    import torch
    from threadpoolctl import threadpool_info

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with bounded_threads(1):
        assert torch.get_num_threads() == 1
        assert all(pool["num_threads"] == 1 for pool in threadpool_info())
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)


def test_the_first_process_names_the_folder(tmp_path):
    store = Store(tmp_path)
    store._name_folder(json.dumps({"schema": SCHEMA, "id": "first"}))
    store._name_folder(json.dumps({"schema": SCHEMA, "id": "second"}))
    assert store.id() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["store.json"]

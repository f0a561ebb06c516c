"""The folder of results."""

import json

import pytest
from bench_data import make_record

from labelweave.bench.running.plan import all_cells
from labelweave.bench.storing.records import SCHEMA
from labelweave.bench.storing.store import Store, read_results
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
    summaries = read_results(store.folder, full=False)
    assert [one["cell"] for one in summaries] == sorted(one["cell"] for one in records)
    assert all(one["history"] is None for one in summaries)


def test_strange_folders_are_refused(tmp_path, store, records):
    with pytest.raises(InputError, match="not a folder of results"):
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


def test_the_first_process_names_the_folder(tmp_path):
    store = Store(tmp_path)
    store._name_folder(json.dumps({"schema": SCHEMA, "id": "first"}))
    store._name_folder(json.dumps({"schema": SCHEMA, "id": "second"}))
    assert store.id() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["store.json"]

"""Runs: resumed, killed, shared, failing, on several processes and on a cluster."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bench_data import scores_of, small_suite

from labelweave.bench.running import runner
from labelweave.bench.running.plan import Quick
from labelweave.bench.running.pool import Pool, WorkerDiedError, run_alone
from labelweave.bench.running.runner import run_suite
from labelweave.bench.running.worker import Assignment, failed_record, work
from labelweave.bench.storing.store import Store, read_results
from labelweave.bench.suite import MethodEntry, ScenarioEntry
from labelweave.exceptions import InputError

HERE = Path(__file__).parents[1]
ALONE = Pool(1)


def run_script(name, *arguments):
    """The numbers that the script prints."""
    command = [sys.executable, HERE / name, *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=HERE, check=True)
    return [int(word) for word in done.stdout.split()]


def test_a_run_keeps_one_record_a_cell(suite, tmp_path):
    result = run_suite(suite, tmp_path / "out", pool=ALONE)
    assert result.n_run == len(result.records) == 16
    assert not result.failed
    stored = read_results(tmp_path / "out")
    assert scores_of(stored) == scores_of(result.records)
    record = stored[0]
    assert record["seconds"]["wall"] >= record["seconds"]["fit"] > 0
    assert record["memory"]["peak"] > 0
    assert record["machine"]["threads"] == 1
    assert record["rows"]["test"] in (18, 12)
    assert set(record["versions"]) >= {"labelweave", "numpy", "torch"}
    assert not list((tmp_path / "out" / "claims").iterdir())
    assert [one.name for one in Store(tmp_path / "out").suites()] == ["small"]


def test_what_is_finished_is_not_run_again(suite, tmp_path):
    first = run_suite(suite, tmp_path / "out", pool=ALONE)
    again = run_suite(suite, tmp_path / "out", pool=ALONE)
    assert again.n_run == 0
    assert scores_of(again.records) == scores_of(first.records)


def test_a_changed_setting_runs_only_its_own_cells(suite, tmp_path):
    run_suite(suite, tmp_path / "out", pool=ALONE)
    other = (suite.methods[0], MethodEntry("MLkNN", "mlknn", settings={"k": 5}))
    changed = run_suite(replace(suite, methods=other), tmp_path / "out", pool=ALONE)
    assert changed.n_run == 8
    assert {r["method"] for r in changed.records if r["settings"] == {"k": 5}} == {"mlknn"}
    more = run_suite(replace(suite, seeds=(0, 1, 2)), tmp_path / "out", pool=ALONE)
    assert more.n_run == 8
    shown = run_suite(replace(suite, name="other", metrics=("cf1",)), tmp_path / "out", pool=ALONE)
    assert shown.n_run == 0  # another table of the same fits


def test_the_same_seed_gives_the_same_scores_elsewhere(suite, tmp_path):
    first = run_suite(suite, tmp_path / "a", pool=ALONE)
    second = run_suite(suite, tmp_path / "b", pool=Pool(2))
    assert scores_of(first.records) == scores_of(second.records)


def test_a_failing_cell_is_recorded_and_does_not_stop_the_rest(suite, tmp_path):
    broken = MethodEntry("broken", "mlknn", settings={"k": -1})
    suite = replace(suite, methods=(broken, suite.methods[0]))
    result = run_suite(suite, tmp_path / "out", pool=ALONE)
    assert len(result.records) == 16
    assert len(result.failed) == 8
    failure = result.failed[0]
    assert "k" in failure["error"]["message"]
    assert "Traceback" in failure["error"]["trace"]
    assert failure["scores"] == {}
    assert run_suite(suite, tmp_path / "out", pool=ALONE).n_run == 0
    assert run_suite(suite, tmp_path / "out", pool=ALONE, retry_failed=True).n_run == 8


def test_a_mistyped_setting_is_told_before_anything_runs(suite, tmp_path):
    wrong = replace(suite, methods=(MethodEntry("BR", "br", settings={"kk": 1}),))
    with pytest.raises(InputError, match="kk"):
        run_suite(wrong, tmp_path / "out", pool=ALONE)


def test_what_is_not_available_is_listed(suite, tmp_path):
    suite = replace(suite, methods=(*suite.methods, MethodEntry("New", "new-method")))
    result = run_suite(suite, tmp_path / "out", pool=ALONE)
    assert [gap.name for gap in result.plan.gaps] == ["New"]
    assert len(result.records) == 16


def test_data_that_cannot_be_had_leave_the_others_alone(suite, tmp_path, monkeypatch):
    monkeypatch.setenv("LABELWEAVE_DATA", str(tmp_path / "none"))
    monkeypatch.setenv("LABELWEAVE_CACHE", str(tmp_path / "none"))
    entry = replace(suite.data[0], name="enron", source="enron", options={})
    result = run_suite(replace(suite, data=(*suite.data, entry)), tmp_path / "out", pool=ALONE)
    assert [(gap.what, gap.name) for gap in result.plan.gaps] == [("data", "enron")]
    assert len(result.records) == 16


def test_a_smoke_run_is_small_and_never_taken_for_a_real_one(suite, tmp_path):
    mlp = MethodEntry("MLP", "mlp", settings={"epochs": 50, "hidden": [8]})
    suite = replace(suite, methods=(mlp,), seeds=(0,))
    quick = run_suite(suite, tmp_path / "out", pool=ALONE, quick=Quick(rows=40, epochs=2))
    assert all(sum(record["rows"].values()) == 40 for record in quick.records)
    assert all(len(record["history"]["epoch"]) == 2 for record in quick.records)
    full = run_suite(replace(suite, methods=suite.methods), tmp_path / "out", pool=ALONE)
    assert full.n_run == len(full.records)


def test_no_cell_is_begun_when_time_is_up(suite, tmp_path):
    result = run_suite(suite, tmp_path / "out", pool=ALONE, seconds=0.0)
    assert result.n_run == 0
    assert result.n_left == 16
    assert run_suite(suite, tmp_path / "out", pool=ALONE).n_run == 16


def test_a_share_of_the_training_rows(suite, tmp_path):
    half = ScenarioEntry("half", settings={"train_share": 0.5})
    result = run_suite(
        replace(suite, scenarios=(ScenarioEntry(), half)), tmp_path / "out", pool=ALONE
    )
    rows = {
        (r["dataset"], r["seed"], r["protocol"], r["scenario"]): r["rows"] for r in result.records
    }
    for (data, seed, protocol, scenario), sizes in rows.items():
        if scenario == "half":
            all_rows = rows[(data, seed, protocol, "")]
            assert sizes["train"] == pytest.approx(all_rows["train"] / 2, abs=1)
            assert sizes["test"] == all_rows["test"]


def test_killed_at_every_kind_of_moment_it_ends_with_the_same_table(tmp_path):
    suite = small_suite(tmp_path, seeds=range(3))
    killed, n_before, kept, n_run, n_records = run_script(
        "killed_run.py", tmp_path, tmp_path / "killed"
    )
    assert killed == 8
    assert kept == n_before == 16  # nothing finished was run again
    assert n_before + n_run == n_records == 24
    untouched = run_suite(suite, tmp_path / "whole", pool=ALONE)
    assert scores_of(read_results(tmp_path / "killed")) == scores_of(untouched.records)


def test_two_processes_share_one_folder(tmp_path):
    small_suite(tmp_path)  # writes the data
    first, n_first, failed, second, n_second, also_failed = run_script(
        "shared_run.py", tmp_path, tmp_path / "out"
    )
    assert n_first == n_second == 32  # each ends with the whole table
    assert first + second == 32  # no cell was run twice
    assert failed == also_failed == 0


def test_a_cell_that_kills_its_process_is_found_and_recorded(suite, tmp_path, monkeypatch):
    """The death of a worker is played: cells that were begun are run again, each alone."""
    cells = run_suite(suite, tmp_path / "plan", pool=ALONE, seconds=0.0).plan.cells
    innocent, deadly = cells[2].name, cells[3].name
    out = Store(tmp_path / "out")

    class Dying(Pool):
        def map(self, function, calls):
            for number, call in enumerate(calls):
                if call[0].name == deadly:
                    for name in (deadly, innocent):
                        out.claim_path(name).write_text("{}")
                    raise WorkerDiedError("gone")
                if number == 0:
                    yield function(*call)

    def alone(function, *call):
        if call[0].name == deadly:
            raise WorkerDiedError("gone again")
        out.claim_path(call[0].name).unlink()
        return function(*call)

    monkeypatch.setattr(runner, "run_alone", alone)
    result = run_suite(suite, out.folder, pool=Dying(1))
    assert [record["cell"] for record in result.failed] == [deadly]
    assert "memory" in result.failed[0]["error"]["message"]
    assert innocent in scores_of(result.records)
    assert len(result.records) == 16


def test_a_process_that_is_killed_is_told_from_one_that_fails():
    assert run_alone(len, "abc") == 3
    with pytest.raises(ZeroDivisionError):
        run_alone(divmod, 1, 0)
    with pytest.raises(WorkerDiedError):
        run_alone(_end_of_process)


def _end_of_process():
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "dask"}, "dask backend"),
        ({"address": "tcp://127.0.0.1:1"}, "dask backend"),
        ({"backend": "threads"}, "one of loky, dask"),
    ],
)
def test_a_backend_and_its_address_go_together(options, message):
    with pytest.raises(InputError, match=message):
        Pool(**options)


def test_a_worker_of_a_dask_cluster(suite, tmp_path):
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, host="127.0.0.1", dashboard_address=None
    ) as cluster:
        pool = Pool(backend="dask", address=cluster.scheduler_address)
        result = run_suite(suite, tmp_path / "dask", pool=pool)
    alone = run_suite(suite, tmp_path / "alone", pool=ALONE)
    assert result.n_run == 16
    assert scores_of(read_results(tmp_path / "dask")) == scores_of(alone.records)


def test_a_worker_that_does_not_see_the_folder_returns_its_record(suite, tmp_path):
    plan = run_suite(suite, tmp_path / "out", pool=ALONE, seconds=0.0).plan
    record, is_new = work(plan.cells[0], Assignment(str(tmp_path / "elsewhere"), "id"))
    assert is_new
    assert record["scores"]
    assert not (tmp_path / "elsewhere").exists()


def test_a_record_from_elsewhere_replaces_the_failed_one(suite, tmp_path, monkeypatch):
    broken = replace(suite, methods=(MethodEntry("broken", "mlknn", settings={"k": -1}),))
    run_suite(broken, tmp_path / "out", pool=ALONE)

    def far_away(cell, assignment):
        return {**failed_record(cell, "E", "m"), "error": None, "scores": {"map": 1.0}}, True

    monkeypatch.setattr(runner, "work", far_away)
    run_suite(broken, tmp_path / "out", pool=ALONE, retry_failed=True)
    assert all(one["scores"] == {"map": 1.0} for one in read_results(tmp_path / "out"))


def test_other_data_under_the_same_name_are_refused(suite, tmp_path):
    plan = run_suite(suite, tmp_path / "out", pool=ALONE, seconds=0.0).plan
    cell = replace(plan.cells[0], data_checksum="of-another-machine")
    record, _ = work(cell, Assignment(str(tmp_path / "elsewhere"), "id"))
    assert "not the same here" in record["error"]["message"]

"""Run one cell and make its record; a failure becomes a record too."""

from __future__ import annotations

import traceback
import warnings
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from labelweave.bench.kinds import kind_module, other_data
from labelweave.bench.running.cell_data import load_with_checksum
from labelweave.bench.running.fitting import Outcome
from labelweave.bench.running.machine import machine
from labelweave.bench.running.plan import Cell
from labelweave.bench.storing.claims import claimed
from labelweave.bench.storing.records import SCHEMA, Failure, Record
from labelweave.bench.storing.store import Store
from labelweave.exceptions import DatasetUnavailableError
from labelweave.measuring import Meter, versions
from labelweave.threads import bounded_threads


@dataclass(frozen=True)
class Assignment:
    """The folder of a worker, its number of threads, and the failed cells to run again."""

    folder: str
    folder_id: str
    threads: int = 1
    retry: frozenset[str] = frozenset()


def work(cell: Cell, assignment: Assignment) -> tuple[Record | None, bool]:
    """Return the record of a cell and whether it was run now; None if another process runs it.

    The process that runs a cell writes its record. A worker that does not see the folder (on a
    cluster without a shared disk) only returns it.
    """
    store = Store(assignment.folder)
    if store.id() != assignment.folder_id:
        return run_cell(cell, assignment.threads), True
    with claimed(store.claim_path(cell.name)) as is_mine:
        if not is_mine:
            return None, False
        if store.path(cell.name).exists() and cell.name not in assignment.retry:
            return store.read(cell.name), False
        record = run_cell(cell, assignment.threads)
        store.write(record)
        return record, True


def data_checksum(cell: Cell) -> str:
    """Return the checksum of the data of a cell and of other data that its scenario needs."""
    entries = (cell.data, *other_data(cell.kind, cell.scenario.settings))
    return "+".join(load_with_checksum(entry)[1] for entry in entries)


def run_cell(cell: Cell, threads: int) -> Record:
    """Run a cell and return its record, which is not written; a failure is a record too."""
    facts: dict[str, Any] = {}
    outcome: Outcome | None = None
    failure: Failure | None = None
    with bounded_threads(threads), Meter() as meter, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            data, _ = load_with_checksum(cell.data)
            facts = _facts(data)
            if data_checksum(cell) != cell.data_checksum:
                raise DatasetUnavailableError(
                    f"{cell.data.name} is not the same here as where the run was started"
                )
            outcome = kind_module(cell.kind).run(cell, data)
        except Exception as error:
            failure = _failure(error)
    record = _record(cell, outcome, failure, facts)
    record["seconds"] = {
        "fit": round(0.0 if outcome is None else outcome.fit_seconds, 4),
        "wall": round(meter.wall, 4),
        "cpu": round(meter.cpu, 4),
    }
    record["memory"] = {
        "peak": round(meter.peak_mb, 1),
        "before": round(meter.before_mb, 1),
        "how": "per cell" if meter.is_reset else "since start",
    }
    record["machine"] = {**machine(), "threads": threads}
    record["warnings"] = sorted({" ".join(str(warning.message).split()) for warning in caught})
    return record


def failed_record(cell: Cell, kind: str, message: str) -> Record:
    """Make the record of a cell whose process ended before it could write one."""
    return _record(cell, None, {"type": kind, "message": message, "trace": ""}, {})


def _failure(error: BaseException) -> Failure:
    return {
        "type": type(error).__name__,
        "message": " ".join(str(error).split()),
        "trace": "".join(traceback.format_exception(error)),
    }


def _facts(data: Any) -> dict[str, Any]:
    summary = data.summary()
    return {name: summary[name] for name in ("rows", "features", "labels", "cardinality")}


def _record(
    cell: Cell, outcome: Outcome | None, failure: Failure | None, facts: dict[str, Any]
) -> Record:
    from labelweave.files import json_ready

    done = outcome or Outcome({}, {}, {}, 0.0)
    return json_ready(
        Record(
            schema=SCHEMA,
            cell=cell.name,
            identity=cell.identity,
            suite=cell.suite,
            kind=cell.kind,
            method=cell.method,
            method_name=cell.method_name,
            settings=cell.resolved,
            dataset=cell.data.name,
            dataset_facts=facts,
            scenario=cell.scenario.name,
            scenario_settings=dict(cell.scenario.settings),
            seed=cell.seed,
            protocol=cell.protocol.name,
            protocol_settings=cell.protocol.settings(),
            rows=done.rows,
            scores=done.scores,
            thresholds=done.thresholds,
            seconds={"fit": done.fit_seconds, "wall": 0.0, "cpu": 0.0},
            memory={"peak": 0.0, "before": 0.0, "how": ""},
            history=done.history,
            artifacts=done.artifacts,
            data_checksum=cell.data_checksum,
            code_version=cell.code_version,
            versions=versions(),
            machine=machine(),
            finished=datetime.now(UTC).isoformat(timespec="seconds"),
            warnings=[],
            error=failure,
        )
    )

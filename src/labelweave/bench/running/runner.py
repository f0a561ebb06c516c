"""Run the cells of a suite that are not finished yet."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike

from labelweave.bench.running.code_version import code_version, methods_named_in
from labelweave.bench.running.plan import Cell, Gap, Plan, Quick, make_plan
from labelweave.bench.running.pool import Pool, WorkerDiedError, run_alone
from labelweave.bench.running.worker import Assignment, data_checksum, failed_record, work
from labelweave.bench.storing.claims import is_claimed
from labelweave.bench.storing.records import Record
from labelweave.bench.storing.store import Store
from labelweave.bench.suite import Suite
from labelweave.exceptions import DatasetUnavailableError, LabelweaveError
from labelweave.methods import list_methods

__all__ = ["Listener", "RunResult", "prepare", "run_suite"]

_POLL = 0.5  # seconds between two checks of cells that other processes run


class Listener:
    """Receives the progress of a run; this base class ignores it."""

    def begin(self, plan: Plan, finished: Sequence[Record], pool: Pool) -> None:
        """Called once, when the plan is made; `finished` are the records of earlier runs."""

    def cell(self, record: Record) -> None:
        """Called for each finished cell."""

    def end(self) -> None:
        """Called at the end of the run."""


@dataclass
class RunResult:
    """The outcome of a run.

    Attributes
    ----------
    plan : Plan
    records : list of dict
        One per finished cell of the plan; those of earlier runs without their histories and
        artifacts.
    n_run : int
        Number of cells that this run ran itself; others existed or came from another machine.
    n_left : int
        Number of cells that were not started in time.
    """

    plan: Plan
    records: list[Record] = field(default_factory=list)
    n_run: int = 0
    n_left: int = 0

    @property
    def failed(self) -> list[Record]:
        """The records of cells that ended with an error."""
        return [record for record in self.records if record["error"] is not None]


def run_suite(
    suite: Suite,
    out: str | PathLike[str],
    *,
    pool: Pool | None = None,
    retry_failed: bool = False,
    quick: Quick | None = None,
    seconds: float | None = None,
    listener: Listener | None = None,
) -> RunResult:
    """Run the cells of a suite that are not in the folder yet.

    Parameters
    ----------
    suite : Suite
    out : path
        Folder of results, created if it does not exist. Several processes, on one or more
        machines, may use the same folder at the same time.
    pool : Pool, optional
        Default: one process per core, one thread each.
    retry_failed : bool, default=False
        Run cells again that failed before.
    quick : Quick, optional
        Limits of a smoke run.
    seconds : float, optional
        Start no cell after this time; reading the data does not count.
    listener : Listener, optional
    """
    pool, listener = pool or Pool(), listener or Listener()
    plan = prepare(make_plan(suite, quick=quick))
    deadline = None if seconds is None else time.monotonic() + seconds
    store = Store(out)
    folder_id = store.create()
    store.write_suite(suite)
    wanted = {cell.name for cell in plan.cells}
    before = [record for record in store.records(full=False) if record["cell"] in wanted]
    kept = {r["cell"]: r for r in before if r["error"] is None or not retry_failed}
    again = frozenset(record["cell"] for record in before) - kept.keys()
    listener.begin(plan, list(kept.values()), pool)
    result = RunResult(plan, list(kept.values()))
    run = _Run(
        store,
        replace(pool, modules=_modules_of(plan)),
        Assignment(str(store.folder.absolute()), folder_id, pool.threads, again),
        deadline,
        {cell.name: cell for cell in plan.cells if cell.name not in kept},
    )
    try:
        for record, is_new in run.records():
            result.records.append(record)
            result.n_run += is_new
            listener.cell(record)
    finally:
        listener.end()
    result.n_left = len(run.todo)
    return result


def _modules_of(plan: Plan) -> tuple[str, ...]:
    """List the modules of the methods of a plan, and the one that runs its cells."""
    used = {cell.method for cell in plan.cells}
    modules = [method.module for method in list_methods() if method.id in used]
    return ("labelweave.bench.running.fitting", *sorted(modules))


def prepare(plan: Plan) -> Plan:
    """Add checksums and code versions to a plan; data that cannot be read become gaps."""
    modules = {method.id: method.module for method in list_methods()}
    checked: dict[tuple[str, ...], str] = {}
    gaps: dict[str, Gap] = {}
    cells = []
    for cell in plan.cells:
        if cell.data.name in gaps:
            continue
        try:
            checksum = data_checksum(cell)
        except DatasetUnavailableError as error:
            gaps[cell.data.name] = Gap("data", cell.data.name, str(error))
            continue
        kind = f"labelweave.bench.kinds.{cell.kind}"
        named = methods_named_in([cell.settings, cell.options])
        needed = (modules[cell.method], kind, *named)
        if needed not in checked:
            checked[needed] = code_version(needed)
        cells.append(replace(cell, data_checksum=checksum, code_version=checked[needed]))
    return Plan(plan.suite, tuple(cells), (*plan.gaps, *gaps.values()))


@dataclass
class _Run:
    """The cells that are left, and how they are finished."""

    store: Store
    pool: Pool
    assignment: Assignment
    deadline: float | None
    todo: dict[str, Cell]

    def records(self) -> Iterator[tuple[Record, bool]]:
        """Yield records as they finish, and whether this run made them, until time is up."""
        ready = list(self.todo)
        while ready and not self._is_late():
            try:
                for name, record, is_new in self.pool.map(_work, self._calls(ready)):
                    yield from self._finish(name, record, is_new)
            except WorkerDiedError as error:
                n_left = len(self.todo)
                yield from self._after_a_death()
                if len(self.todo) == n_left:  # the process died before it started a cell
                    raise LabelweaveError(f"the worker processes cannot start: {error}") from error
            ready = self._wait_for_others()

    def _calls(self, names: list[str]) -> Iterator[tuple[Cell, Assignment]]:
        for name in names:
            if self._is_late():
                return
            yield self.todo[name], self.assignment

    def _is_late(self) -> bool:
        return self.deadline is not None and time.monotonic() > self.deadline

    def _finish(
        self, name: str, record: Record | None, is_new: bool
    ) -> Iterator[tuple[Record, bool]]:
        if record is None:
            return  # another process works on it
        if is_new and not self._is_written(record):  # the worker does not see the folder
            self.store.write(record)
        del self.todo[name]
        yield record, is_new

    def _is_written(self, record: Record) -> bool:
        name = record["cell"]
        if name in self.assignment.retry:  # the file may be an older one
            return self.store.read(name) == record
        return self.store.path(name).exists()

    def _after_a_death(self) -> Iterator[tuple[Record, bool]]:
        """Run each cell that was started again, alone; one that ends its process has failed."""
        for name in list(self.todo):
            if self.store.path(name).exists() and name not in self.assignment.retry:
                yield from self._finish(name, self.store.read(name), True)
            elif self.store.claim_path(name).exists():
                is_new = True
                try:
                    _, record, is_new = run_alone(_work, self.todo[name], self.assignment)
                except WorkerDiedError:
                    record = failed_record(
                        self.todo[name],
                        "WorkerDiedError",
                        "the process that ran it was ended by the system, as happens when "
                        "memory runs out",
                    )
                    self.store.write(record)
                yield from self._finish(name, record, is_new)

    def _wait_for_others(self) -> list[str]:
        """Return the cells that no running process works on any more."""
        while self.todo and not self._is_late():
            free = [n for n in self.todo if not is_claimed(self.store.claim_path(n))]
            if free:
                return free
            time.sleep(_POLL)
        return []


def _work(cell: Cell, assignment: Assignment) -> tuple[str, Record | None, bool]:
    return cell.name, *work(cell, assignment)

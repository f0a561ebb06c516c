"""Which stored cells are of older code or data, and whether today's code still gives their scores.

A stored cell is *current* if today's code and data would give it the name that it has. Code that a
method imports changes often, and most changes change no score: :func:`measure_again` runs a cell
with today's code and compares.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatch
from typing import Any

from labelweave.bench.running.plan import Cell, Plan, all_cells
from labelweave.bench.running.runner import prepare
from labelweave.bench.running.worker import run_cell
from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite
from labelweave.exceptions import InputError

STATES = ("current", "older code", "other data", "no such cell now")
_ROUNDING = 1e-7  # stored scores have eight digits


@dataclass(frozen=True)
class StoredCell:
    """A stored record, what today's code would run in its place, and how the two compare.

    * `cell`: None where no suite has a cell with these settings any more, or its data are not here.
    * `state`: One of :data:`STATES`.
    """

    record: Record
    cell: Cell | None
    state: str


@dataclass(frozen=True)
class Check:
    """A stored cell that was run again: the metric that differs most, and by how much."""

    stored: StoredCell
    metric: str
    before: float | None
    now: float | None
    error: str | None = None

    @property
    def is_equal(self) -> bool:
        """Whether every score is equal to its last stored digit."""
        if self.error is not None or self.before is None or self.now is None:
            return self.error is None and self.before is self.now
        return abs(self.before - self.now) <= _ROUNDING

    def describe(self) -> str:
        """Describe the outcome in one line."""
        assert self.stored.cell is not None
        what = self.stored.cell.describe()
        if self.error is not None:
            return f"{what}: failed now: {self.error}"
        if self.is_equal:
            return f"{what}: equal to the last stored digit"
        return f"{what}: differs, {self.metric} {self.before} -> {self.now}"

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as values for JSON."""
        assert self.stored.cell is not None
        return {
            "cell": self.stored.cell.describe(),
            "equal": self.is_equal,
            "metric": self.metric,
            "before": self.before,
            "now": self.now,
            "error": self.error,
        }


def stored_cells(records: Iterable[Record], suites: Iterable[Suite]) -> list[StoredCell]:
    """Compare the records of cells that have scores with what today's code and data would run.

    * `records`: As :func:`labelweave.bench.storing.cell_file.unpack` or a folder of results has
      them.
    * `suites`: The suites that the records may be cells of.
    """
    scored = [record for record in records if record["error"] is None]
    wanted = {record["identity"] for record in scored}
    today: dict[str, Cell] = {}
    for suite in suites:
        cells = {cell.identity: cell for cell in all_cells(replace(suite, seeds=suite.seeds[:1]))}
        needed = [cells[one] for one in cells if one in wanted and one not in today]
        today |= {cell.identity: cell for cell in prepare(Plan(suite, tuple(needed))).cells}
    return [_compared(record, today.get(record["identity"])) for record in scored]


def _compared(record: Record, cell: Cell | None) -> StoredCell:
    if cell is None:
        return StoredCell(record, None, STATES[3])
    cell = replace(cell, seed=record["seed"])
    if cell.data_checksum != record["data_checksum"]:
        return StoredCell(record, cell, STATES[2])
    is_current = cell.code_version == record["code_version"]
    return StoredCell(record, cell, STATES[0] if is_current else STATES[1])


def count_by_method(cells: Iterable[StoredCell]) -> list[dict[str, Any]]:
    """Count the cells of each method and data set by their state."""
    counts: dict[tuple[str, str], Counter[str]] = {}
    for one in cells:
        place = (one.record["method_name"], one.record["dataset"])
        counts.setdefault(place, Counter())[one.state] += 1
    return [
        {"method": method, "data": data, **{state: states[state] for state in STATES}}
        for (method, data), states in counts.items()
    ]


def quickest_outdated(cells: Iterable[StoredCell]) -> list[StoredCell]:
    """Choose, for each data set and method, the outdated cell that took the least CPU time."""
    chosen: dict[tuple[str, str], StoredCell] = {}
    for one in cells:
        if one.cell is not None and one.state != STATES[0]:
            place = (one.cell.data.name, one.cell.method_name)
            if place not in chosen or _cost(one) < _cost(chosen[place]):
                chosen[place] = one
    return list(chosen.values())


def _cost(one: StoredCell) -> float:
    return one.record["seconds"]["cpu"]


def measure_again(cells: Iterable[StoredCell], threads: int = 1) -> Iterator[Check]:
    """Run cells with today's code; nothing is stored."""
    for one in cells:
        assert one.cell is not None
        record = run_cell(one.cell, threads)
        if record["error"] is not None:
            yield Check(one, "", None, None, record["error"]["message"])
            continue
        yield _largest_difference(one, record)


def _largest_difference(one: StoredCell, record: Record) -> Check:
    checks = [
        Check(one, metric, before, record["scores"].get(metric))
        for metric, before in one.record["scores"].items()
    ]
    return max(checks, key=_size)


def _size(check: Check) -> float:
    if check.before is None or check.now is None:
        return 0.0 if check.before is check.now else float("inf")
    return abs(check.before - check.now)


def only(records: Iterable[Record], patterns: Sequence[str]) -> list[Record]:
    """Keep the records that match some patterns, as `bench run` selects the parts of a suite.

    A pattern is the name of a data set, scenario, method or protocol, with or without wildcards.
    Of each of these only the names that match a pattern are kept; all, where none matches.
    """
    kept, unused = list(records), set(patterns)
    for field in ("dataset", "scenario", "method_name", "protocol"):
        names = {str(one[field]) for one in kept}
        exact = {name for name in names if name in patterns}
        matched = {
            pattern: {pattern} if pattern in exact else {n for n in names if fnmatch(n, pattern)}
            for pattern in patterns
        }
        wanted = set().union(*matched.values())
        unused -= {pattern for pattern, found in matched.items() if found}
        if wanted:
            kept = [one for one in kept if one[field] in wanted]
    if unused:
        raise InputError(
            f"no stored cell has a data set, scenario, method or protocol called "
            f"{sorted(unused)[0]!r}"
        )
    return kept

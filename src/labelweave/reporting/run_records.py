"""Which records of a benchmark run a section shows."""

from __future__ import annotations

from collections.abc import Sequence

from labelweave.bench.comparing.comparison import latest
from labelweave.bench.running.plan import Quick, all_cells
from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite

__all__ = ["condition", "of_one_protocol", "records_of_suite"]


def records_of_suite(suite: Suite, records: Sequence[Record]) -> list[Record]:
    """Return the newest record of each cell of a suite, in the order of the suite."""
    cells = [cell.identity for quick in (None, Quick()) for cell in all_cells(suite, quick=quick)]
    position = {identity: k for k, identity in enumerate(cells)}
    newest, _ = latest(record for record in records if record["identity"] in position)
    return sorted(newest, key=lambda record: position[record["identity"]])


def of_one_protocol(records: Sequence[Record]) -> tuple[list[Record], str]:
    """Return the records of the honest protocol, or of another if it has none, and its name."""
    names = sorted({record["protocol"] for record in records}, key=lambda name: name != "honest")
    name = names[0] if names else ""
    return [record for record in records if record["protocol"] == name], name


def condition(record: Record) -> str:
    """Return the data set and scenario of a record."""
    scenario = record["scenario"]
    return f"{record['dataset']}, {scenario}" if scenario else record["dataset"]

"""Which records a section shows."""

from __future__ import annotations

from collections.abc import Sequence

from labelweave.bench.comparing.comparison import latest
from labelweave.bench.running.plan import Quick, all_cells
from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite

__all__ = ["condition", "of_one_protocol", "records_of"]


def records_of(suite: Suite, records: Sequence[Record]) -> list[Record]:
    """The newest record of each cell of a suite, in the order of the suite."""
    cells = [cell.identity for quick in (None, Quick()) for cell in all_cells(suite, quick=quick)]
    place = {identity: k for k, identity in enumerate(cells)}
    own, _ = latest(record for record in records if record["identity"] in place)
    return sorted(own, key=lambda record: place[record["identity"]])


def of_one_protocol(records: Sequence[Record]) -> tuple[list[Record], str]:
    """The records of the honest protocol, or of another where there is none, and its name."""
    names = sorted({record["protocol"] for record in records}, key=lambda name: name != "honest")
    name = names[0] if names else ""
    return [record for record in records if record["protocol"] == name], name


def condition(record: Record) -> str:
    """Data set and scenario."""
    scenario = record["scenario"]
    return f"{record['dataset']}, {scenario}" if scenario else record["dataset"]

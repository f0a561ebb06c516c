"""What is missing, what failed, and what the cells ran on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from labelweave.bench.comparing.comparison import Comparison
from labelweave.bench.running.plan import make_plan
from labelweave.bench.storing.records import Record
from labelweave.reporting.document import Block, Paragraph, Section, Table

__all__ = ["facts_section", "missing_section"]

_MOST_FAILURES = 50
_LONGEST_MESSAGE = 300


def missing_section(comparison: Comparison, records: Sequence[Record]) -> Section:
    """Methods and data that are not available here, and cells that are unfinished or failed."""
    blocks: list[Block] = []
    if not comparison.is_quick:
        blocks += _unfinished(comparison, records)
    if comparison.gaps:
        rows = [(gap.what, gap.name, gap.reason) for gap in comparison.gaps]
        blocks.append(Table("Asked for and not available here", ("what", "name", "why"), rows))
    if comparison.failures:
        shown = [
            (cell, error[:_LONGEST_MESSAGE]) for cell, error in comparison.failures[:_MOST_FAILURES]
        ]
        n = len(comparison.failures)
        some = f", the first {_MOST_FAILURES}" if n > _MOST_FAILURES else ""
        blocks.append(Table(f"{n:,} cells failed{some}", ("cell", "error"), shown))
    nothing = Paragraph("Everything that the suite asks for is available, and no cell failed.")
    return Section("Missing and failed", blocks or [nothing])


def _unfinished(comparison: Comparison, records: Sequence[Record]) -> list[Block]:
    """How many cells of the suite could be run and have not been."""
    finished = {(record["identity"], record["seed"]) for record in records}
    cells = make_plan(comparison.suite).cells
    left = [cell for cell in cells if (cell.identity, cell.seed) not in finished]
    if not left:
        return []
    by_data = Counter(cell.data.name for cell in left)
    where = ", ".join(f"{name} {n:,}" for name, n in by_data.items())
    return [Paragraph(f"{len(left):,} of {len(cells):,} cells are not finished: {where}.")]


def facts_section(records: Sequence[Record]) -> Section:
    """Seeds, machines, versions, data and time of all cells."""
    seeds = sorted({record["seed"] for record in records})
    finished = sorted(record["finished"] for record in records)
    facts = [
        ("cells", len(records)),
        ("seeds", ", ".join(map(str, seeds))),
        ("first finished", finished[0]),
        ("last finished", finished[-1]),
        ("hours of all cells", sum(record["seconds"]["wall"] for record in records) / 3600),
    ]
    data = {
        (record["dataset"], record["data_checksum"]): record["dataset_facts"] for record in records
    }
    columns = ("rows", "features", "labels", "cardinality")
    return Section(
        "Run facts",
        [
            Table("The run", ("fact", "value"), facts),
            Table(
                "Data",
                ("data", *columns, "checksum"),
                [
                    (name, *(known.get(column) for column in columns), checksum[:12])
                    for (name, checksum), known in sorted(data.items())
                ],
            ),
            _counted("Machines", [record["machine"] for record in records]),
            _counted("Versions", [record["versions"] for record in records]),
        ],
    )


def _counted(title: str, facts: Sequence[dict[str, Any]]) -> Table:
    """Each set of facts once, with the number of cells it goes with."""
    counts = Counter(tuple(sorted(one.items())) for one in facts)
    columns = list(dict.fromkeys(name for one in counts for name, _ in one))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    rows = [(*(dict(one).get(name) for name in columns), n) for one, n in ordered]
    return Table(title, (*columns, "cells"), rows, digits=1)

"""The report on a benchmark run: its sections in order, what is missing, and the run facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelweave.bench.comparing.comparison import Comparison, compare
from labelweave.bench.running.plan import make_plan
from labelweave.bench.storing.records import Record
from labelweave.bench.storing.store import Store, read_results
from labelweave.exceptions import InputError
from labelweave.reporting.report_content import (
    Block,
    Paragraph,
    Report,
    Section,
    Table,
    timestamp,
)
from labelweave.reporting.run_records import records_of_suite
from labelweave.reporting.run_sections.average_ranks import ranks_section
from labelweave.reporting.run_sections.label_embeddings import embeddings_section
from labelweave.reporting.run_sections.method_curves import curves_section
from labelweave.reporting.run_sections.score_tables import scores_section
from labelweave.reporting.run_sections.time_and_memory import cost_section

__all__ = ["run_report"]

_MOST_FAILURES = 50
_LONGEST_MESSAGE = 300


def run_report(folder: Path, n_shown: int = 30) -> Report:
    """Return the report on the results in a folder, suite by suite."""
    records = read_results(folder)
    suites = Store(folder).suites()
    if not records or not suites:
        raise InputError(f"{folder} holds no finished cell yet: there is nothing to report")
    sections: list[Section] = []
    for suite in suites:
        suite_records = records_of_suite(suite, records)
        comparison = compare(records, suite)
        suite_sections = [
            scores_section(comparison),
            ranks_section(comparison),
            curves_section(suite, suite_records),
            embeddings_section(suite, suite_records, n_shown),
            cost_section(suite, suite_records),
            _missing_section(comparison, suite_records),
        ]
        prefix = f"{suite.name}: " if len(suites) > 1 else ""
        sections += [
            Section(f"{prefix}{section.title}", section.blocks)
            for section in suite_sections
            if section is not None
        ]
    names = ", ".join(suite.name for suite in suites)
    n_failed = sum(record["error"] is not None for record in records)
    failed = f", {n_failed:,} of them failed" if n_failed else ""
    return Report(
        title=f"Bench: {names}",
        subtitle=f"{len(records):,} finished cell{'s' * (len(records) > 1)}{failed}",
        made=timestamp(),
        sections=[*sections, _facts_section(records)],
    )


def _missing_section(comparison: Comparison, records: Sequence[Record]) -> Section:
    """Return unavailable methods and data, and the cells that are unfinished or failed."""
    blocks: list[Block] = []
    if not comparison.is_quick:
        blocks += _unfinished_cells(comparison, records)
    if comparison.gaps:
        rows = [(gap.what, gap.name, gap.reason) for gap in comparison.gaps]
        blocks.append(Table("Requested but not available here", ("what", "name", "why"), rows))
    if comparison.failures:
        failures = [
            (cell, error[:_LONGEST_MESSAGE]) for cell, error in comparison.failures[:_MOST_FAILURES]
        ]
        n = len(comparison.failures)
        shown = f", the first {_MOST_FAILURES}" if n > _MOST_FAILURES else ""
        blocks.append(Table(f"{n:,} cells failed{shown}", ("cell", "error"), failures))
    complete = Paragraph("Everything in the suite is available, and no cell failed.")
    return Section("Missing and failed", blocks or [complete])


def _unfinished_cells(comparison: Comparison, records: Sequence[Record]) -> list[Block]:
    finished = {(record["identity"], record["seed"]) for record in records}
    cells = make_plan(comparison.suite).cells
    unfinished = [cell for cell in cells if (cell.identity, cell.seed) not in finished]
    if not unfinished:
        return []
    counts = Counter(cell.data.name for cell in unfinished)
    where = ", ".join(f"{name} {n:,}" for name, n in counts.items())
    return [Paragraph(f"{len(unfinished):,} of {len(cells):,} cells are not finished: {where}.")]


def _facts_section(records: Sequence[Record]) -> Section:
    """Return seeds, machines, versions, data and time of all cells."""
    seeds = sorted({record["seed"] for record in records})
    finished = sorted(record["finished"] for record in records)
    facts = [
        ("cells", len(records)),
        ("seeds", ", ".join(map(str, seeds))),
        ("first finished", finished[0]),
        ("last finished", finished[-1]),
        ("hours of all cells", sum(record["seconds"]["wall"] for record in records) / 3600),
    ]
    datasets = {
        (record["dataset"], record["data_checksum"]): record["dataset_facts"] for record in records
    }
    columns = ("rows", "features", "labels", "cardinality")
    rows = [
        (name, *(known.get(column) for column in columns), checksum[:12])
        for (name, checksum), known in sorted(datasets.items())
    ]
    return Section(
        "Run facts",
        [
            Table("The run", ("fact", "value"), facts),
            Table("Data", ("data", *columns, "checksum"), rows),
            _counted("Machines", [record["machine"] for record in records]),
            _counted("Versions", [record["versions"] for record in records]),
        ],
    )


def _counted(title: str, facts: Sequence[dict[str, Any]]) -> Table:
    """Return each different set of facts with its number of cells."""
    counts = Counter(tuple(sorted(one.items())) for one in facts)
    columns = list(dict.fromkeys(name for one in counts for name, _ in one))
    ordered = sorted(counts.items(), key=lambda item: (-item[1], str(item[0])))
    rows = [(*(dict(one).get(name) for name in columns), n) for one, n in ordered]
    return Table(title, (*columns, "cells"), rows, digits=1)

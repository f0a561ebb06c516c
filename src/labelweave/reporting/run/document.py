"""The sections of a run's report, in their order."""

from __future__ import annotations

from pathlib import Path

from labelweave.bench.comparing.comparison import compare
from labelweave.bench.storing.store import Store, read_results
from labelweave.exceptions import InputError
from labelweave.reporting.document import Document, Section
from labelweave.reporting.run.cost import cost_section
from labelweave.reporting.run.curves import curves_section
from labelweave.reporting.run.embeddings import embeddings_section
from labelweave.reporting.run.facts import facts_section, missing_section
from labelweave.reporting.run.figures import figures_section
from labelweave.reporting.run.ranks import ranks_section
from labelweave.reporting.run.selection import records_of

__all__ = ["run_document"]


def run_document(folder: Path, *, made: str, n_shown: int = 30) -> Document:
    """Everything that the results in a folder say, suite by suite."""
    records = read_results(folder)
    suites = Store(folder).suites()
    if not records or not suites:
        raise InputError(f"{folder} holds no finished cell yet: there is nothing to report")
    sections: list[Section] = []
    for suite in suites:
        own = records_of(suite, records)
        comparison = compare(records, suite)
        found = [
            figures_section(comparison),
            ranks_section(comparison),
            curves_section(suite, own),
            embeddings_section(suite, own, n_shown),
            cost_section(suite, own),
            missing_section(comparison, own),
        ]
        before = f"{suite.name}: " if len(suites) > 1 else ""
        sections += [
            Section(f"{before}{section.title}", section.blocks)
            for section in found
            if section is not None
        ]
    names = ", ".join(suite.name for suite in suites)
    n_failed = sum(record["error"] is not None for record in records)
    failed = f", {n_failed:,} of them failed" if n_failed else ""
    return Document(
        title=f"Bench: {names}",
        subtitle=f"{len(records):,} finished cell{'s' * (len(records) > 1)}{failed}",
        made=made,
        sections=[*sections, facts_section(records)],
    )

"""The section of scores: measured beside published figures, one table per metric."""

from __future__ import annotations

from labelweave.bench.comparing.comparison import Comparison
from labelweave.bench.comparing.comparison_tables import figure_tables
from labelweave.reporting.report_content import Block, Note, Paragraph, Section, Table

__all__ = ["scores_section"]


def scores_section(comparison: Comparison) -> Section:
    """Return one table per metric; each protocol has its own column."""
    suite = comparison.suite
    blocks: list[Block] = [Paragraph(suite.title)]
    if comparison.is_quick:
        blocks.append(
            Note("A quick trial run on few rows: the figures say nothing about the methods.")
        )
    if suite.stand_in is not None:
        blocks.append(
            Note(f"A stand-in for {suite.stand_in}, on other data: no published figure applies.")
        )
    if comparison.n_old:
        blocks.append(Note(f"{comparison.n_old:,} scores were measured with older code or data."))
    blocks += [Paragraph(note) for note in suite.notes]
    protocols = [(protocol.name, protocol.describe()) for protocol in suite.protocols]
    caption = "Protocols, which are never mixed in one column"
    blocks.append(Table(caption, ("protocol", "description"), protocols))
    explained = "mean ± standard deviation over seeds [95% interval of the mean], * the best"
    blocks += [
        Table(f"{table.title}; {explained}", table.columns, table.rows)
        for table in figure_tables(comparison)
        if table.rows
    ]
    return Section("Figures", blocks)

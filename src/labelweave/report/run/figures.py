"""Measured and published figures, a table a metric."""

from __future__ import annotations

from collections.abc import Sequence

from labelweave.bench.comparison import Comparison, Row
from labelweave.metrics import get_metric
from labelweave.report.document import Block, Note, Paragraph, Section, Spread, Table

__all__ = ["figures_section"]


def figures_section(comparison: Comparison) -> Section:
    """A table a metric; each protocol has columns of its own."""
    suite = comparison.suite
    blocks: list[Block] = [Paragraph(suite.title)]
    if comparison.is_quick:
        blocks.append(Note("A smoke run on few rows: the figures say nothing about the methods."))
    if suite.stand_in is not None:
        blocks.append(
            Note(f"A stand-in for {suite.stand_in}, on other data: no published figure applies.")
        )
    if comparison.n_old:
        blocks.append(Note(f"{comparison.n_old:,} scores were measured with older code or data."))
    blocks += [Paragraph(note) for note in suite.notes]
    protocols = [(one.name, one.describe()) for one in suite.protocols]
    blocks.append(Table("Protocols, never mixed in one column", ("protocol", "how"), protocols))
    for metric in suite.metrics:
        rows = [row for row in comparison.rows if row.metric == metric]
        if rows:
            blocks.append(_table(metric, rows, [name for name, _ in protocols]))
    return Section("Figures", blocks)


def _table(metric: str, rows: Sequence[Row], protocols: Sequence[str]) -> Table:
    known = get_metric(metric)
    better = "higher" if known.greater_is_better else "lower"
    best = _best(rows, known.sign)
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((row.condition, row.method), {})[row.protocol] = row
    with_published = any(row.published is not None for row in rows)
    columns = ["data", "method"]
    for name in protocols:
        columns += [name, "95% interval", "seeds"]
    columns += ["published"] if with_published else []
    body = []
    for (condition, method), by_protocol in lines.items():
        cells: list[object] = [condition, method]
        for name in protocols:
            cells += _measured(by_protocol.get(name), best)
        if with_published:
            row = next(iter(by_protocol.values()))
            figure = row.published
            cells.append(None if figure is None else Spread(figure, row.published_std))
        body.append(cells)
    title = f"{known.label} ({metric}), {better} is better; mean ± standard deviation over seeds, "
    return Table(title + "* the best measured of its data and protocol", columns, body, digits=3)


def _measured(row: Row | None, best: set[Row]) -> list[object]:
    if row is None or row.mean is None:
        return [None, None, f"{row.n_failed} failed" if row is not None and row.n_failed else None]
    interval = None if row.low is None else f"{row.low:.3f}\u2013{row.high:.3f}"
    spread = row.std if len(row.values) > 1 else None
    failed = f", {row.n_failed} failed" if row.n_failed else ""
    return [Spread(row.mean, spread, row in best), interval, f"{len(row.values)}{failed}"]


def _best(rows: Sequence[Row], sign: int) -> set[Row]:
    """The best measured rows of each data set and protocol, where there are several."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.mean is not None:
            groups.setdefault((row.condition, row.protocol), []).append(row)
    found: set[Row] = set()
    for group in groups.values():
        top = max(sign * (row.mean or 0.0) for row in group)
        if len(group) > 1:
            found |= {row for row in group if sign * (row.mean or 0.0) == top}
    return found

"""Measured and published figures, a table a metric."""

from __future__ import annotations

from collections.abc import Sequence

from labelweave.bench.comparing.comparison import Comparison, Row
from labelweave.bench.comparing.comparison_tables import Grid, best_rows, grids
from labelweave.metrics import get_metric
from labelweave.reporting.document import Block, Note, Paragraph, Section, Spread, Table

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
        if across := grids(comparison, metric):
            blocks += _grid_tables(metric, across)
        elif rows:
            blocks.append(_table(metric, rows, [name for name, _ in protocols]))
    return Section("Figures", blocks)


def _grid_tables(metric: str, found: Sequence[Grid]) -> list[Table]:
    """A line a method and a column a data set."""
    known = get_metric(metric)
    better = "higher" if known.greater_is_better else "lower"
    best = best_rows(list(found[0].rows.values()), known.sign)

    def cell(grid: Grid, condition: str, method: str) -> Spread | None:
        row = grid.rows.get((condition, method))
        if row is None or row.mean is None:
            return None
        return Spread(row.mean, row.std if len(row.values) > 1 else None, row in best)

    title = f"{known.label} ({metric}), {better} is better; mean ± standard deviation over seeds, "
    return [
        Table(
            f"{title}* the best of its data set{', continued' if number else ''}",
            ("method", *grid.conditions),
            [[m, *(cell(grid, c, m) for c in grid.conditions)] for m in grid.methods],
            digits=3,
        )
        for number, grid in enumerate(found)
    ]


def _table(metric: str, rows: Sequence[Row], protocols: Sequence[str]) -> Table:
    known = get_metric(metric)
    better = "higher" if known.greater_is_better else "lower"
    best = best_rows(rows, known.sign)
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

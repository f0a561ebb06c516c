"""The section of scores: measured beside published figures, one table per metric."""

from __future__ import annotations

from collections.abc import Sequence

from labelweave.bench.comparing.comparison import Comparison, Row
from labelweave.bench.comparing.comparison_tables import Grid, best_rows, grids
from labelweave.metrics import get_metric
from labelweave.reporting.report_content import (
    Block,
    MeanScore,
    Note,
    Paragraph,
    Section,
    Table,
)

__all__ = ["scores_section"]


def scores_section(comparison: Comparison) -> Section:
    """Return one table per metric; each protocol has its own columns."""
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
    for metric in suite.metrics:
        rows = [row for row in comparison.rows if row.metric == metric]
        if metric_grids := grids(comparison, metric):
            blocks += _grid_tables(metric, metric_grids)
        elif rows:
            blocks.append(_protocol_table(metric, rows, [name for name, _ in protocols]))
    return Section("Figures", blocks)


def _caption(metric: str, best: str) -> str:
    known = get_metric(metric)
    better = "higher" if known.greater_is_better else "lower"
    return (
        f"{known.label} ({metric}), {better} is better; mean ± standard deviation over seeds, "
        f"* the best {best}"
    )


def _grid_tables(metric: str, metric_grids: Sequence[Grid]) -> list[Table]:
    """Return tables with one line per method and one column per data set."""
    best = best_rows(list(metric_grids[0].rows.values()), get_metric(metric).sign)

    def cell(grid: Grid, condition: str, method: str) -> MeanScore | None:
        row = grid.rows.get((condition, method))
        return None if row is None or row.mean is None else _mean_score(row, best)

    caption = _caption(metric, "of its data set")
    return [
        Table(
            f"{caption}{', continued' if number else ''}",
            ("method", *grid.conditions),
            [[m, *(cell(grid, c, m) for c in grid.conditions)] for m in grid.methods],
            digits=3,
        )
        for number, grid in enumerate(metric_grids)
    ]


def _protocol_table(metric: str, rows: Sequence[Row], protocols: Sequence[str]) -> Table:
    """Return a table with one line per data set and method and columns for each protocol."""
    best = best_rows(rows, get_metric(metric).sign)
    lines: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        lines.setdefault((row.condition, row.method), {})[row.protocol] = row
    with_published = any(row.published is not None for row in rows)
    columns = ["data", "method"]
    for name in protocols:
        columns += [name, "95% interval", "seeds"]
    columns += ["published"] if with_published else []
    table_rows = []
    for (condition, method), by_protocol in lines.items():
        cells: list[object] = [condition, method]
        for name in protocols:
            cells += _measured_cells(by_protocol.get(name), best)
        if with_published:
            row = next(iter(by_protocol.values()))
            published = row.published
            cells.append(None if published is None else MeanScore(published, row.published_std))
        table_rows.append(cells)
    caption = _caption(metric, "measured of its data and protocol")
    return Table(caption, columns, table_rows, digits=3)


def _measured_cells(row: Row | None, best: set[Row]) -> list[object]:
    """Return the mean, its interval and the number of seeds."""
    if row is None or row.mean is None:
        return [None, None, f"{row.n_failed} failed" if row is not None and row.n_failed else None]
    interval = None if row.low is None else f"{row.low:.3f}\u2013{row.high:.3f}"
    failed = f", {row.n_failed} failed" if row.n_failed else ""
    return [_mean_score(row, best), interval, f"{len(row.values)}{failed}"]


def _mean_score(row: Row, best: set[Row]) -> MeanScore:
    assert row.mean is not None
    return MeanScore(row.mean, row.std if len(row.values) > 1 else None, row in best)

"""Tables of a comparison, for the terminal, Markdown and CSV.

Many methods on many data sets, under one protocol and with nothing published, stand in grids with
one row per method and one column per data set. All other figures are listed, one row per data set
and method.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple

from labelweave.bench.comparing.comparison import Comparison, Row
from labelweave.bench.comparing.method_ranks import Ranking, draw_diagram, friedman_in_words

FEWEST = 4  # methods and data sets of a grid; fewer are listed
MOST_COLUMNS = 5  # data sets side by side


class Table(NamedTuple):
    """A title, the names of the columns, and rows of text."""

    title: str
    columns: list[str]
    rows: list[list[str]]

    def markdown(self) -> str:
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        escaped = ([cell.replace("|", "\\|") for cell in line] for line in lines)
        return "\n".join("| " + " | ".join(line) + " |" for line in escaped)


def figure_tables(comparison: Comparison) -> list[Table]:
    """Make the tables of each metric: measured under each protocol, and published.

    A star marks the best method on a data set under a protocol. Data sets on which nothing was
    measured are left out; they are among the gaps.
    """
    from labelweave.metrics import get_metric

    suite = comparison.suite
    tried = {row.condition for row in comparison.rows if row.n_seeds or row.n_failed}
    has_published = any(row.published is not None for row in comparison.rows)
    tables = []
    for metric in suite.metrics:
        known = get_metric(metric)
        better = "higher" if known.greater_is_better else "lower"
        title = f"{known.label} ({metric}, {better} is better)"
        if across := _grids(comparison, metric):
            tables += _grid_tables(across, title, known.sign, len(suite.seeds))
            continue
        shown = [r for r in comparison.rows if r.metric == metric and r.condition in tried]
        best = best_rows(shown, known.sign)
        places: dict[tuple[str, str], dict[str, Row]] = {}
        for row in shown:
            places.setdefault((row.condition, row.method), {})[row.protocol] = row
        columns = ["data", "method", *(protocol.name for protocol in suite.protocols)]
        rows = []
        for (condition, method), by_protocol in places.items():
            cells = [_measured(by_protocol.get(one.name), best) for one in suite.protocols]
            if has_published:
                cells.append(_published(next(iter(by_protocol.values()))))
            rows.append([condition, method, *cells])
        tables.append(Table(title, columns + ["published"] * has_published, rows))
    return tables


def _grid_tables(parts: Sequence[Grid], title: str, sign: int, n_seeds: int) -> list[Table]:
    best = best_rows(list(parts[0].rows.values()), sign)

    def cell(grid: Grid, condition: str, method: str) -> str:
        row = grid.rows.get((condition, method))
        if row is None or row.mean is None:
            return "-"
        spread = f" ± {row.std:.3f}" if row.n_seeds > 1 else ""
        few = f" n={row.n_seeds}" if row.n_seeds < n_seeds else ""
        return f"{row.mean:.3f}{spread}{few}{' *' if row in best else ''}"

    return [
        Table(
            title if number == 0 else f"{title}, continued",
            ["method", *grid.conditions],
            [[m, *(cell(grid, c, m) for c in grid.conditions)] for m in grid.methods],
        )
        for number, grid in enumerate(parts)
    ]


def _measured(row: Row | None, best: set[Row]) -> str:
    """Write mean ± standard deviation [bootstrap interval], number of seeds, * for the best."""
    if row is None or (row.mean is None and not row.n_failed):
        return "-"
    if row.mean is None:
        return f"failed ({row.n_failed})"
    text = f"{row.mean:.4f}"
    if row.n_seeds > 1:
        text += f" ± {row.std:.4f} [{row.low:.4f}, {row.high:.4f}]"
    failed = f", {row.n_failed} failed" if row.n_failed else ""
    return f"{text} n={row.n_seeds}{failed}{' *' if row in best else ''}"


def _published(row: Row) -> str:
    if row.published is None:
        return "-"
    spread = "" if row.published_std is None else f" ± {row.published_std:.4g}"
    return f"{row.published:.4g}{spread}"


def ranking_lines(ranking: Ranking) -> list[str]:
    """Write a diagram, the Friedman test and the pairs that differ by Wilcoxon's test."""
    lines = [f"{ranking.metric}, {ranking.protocol}: {friedman_in_words(ranking)}"]
    if ranking.left_out:
        lines.append(f"left out for lack of scores: {', '.join(ranking.left_out)}")
    lines += draw_diagram(ranking)
    different = [pair for pair in ranking.pairs if pair["different"]]
    if different:
        pairs = (f"{p['first']} / {p['second']} (p = {p['p_holm']:.3g})" for p in different)
        lines.append(f"different by Wilcoxon-Holm: {', '.join(pairs)}")
    elif ranking.pairs:
        lines.append("no pair differs by Wilcoxon-Holm")
    return lines


def gap_lines(comparison: Comparison) -> list[str]:
    """List what is not available, what failed and what is old, one line each."""
    lines = [f"not available: {gap.what} {gap.name} ({gap.reason})" for gap in comparison.gaps]
    lines += [f"failed: {cell}: {error}" for cell, error in comparison.failures]
    if comparison.n_old:
        lines.append(
            f"{comparison.n_old} scores were measured with other code or data than the newest "
            "beside them: run the suite again"
        )
    return lines


def heading_lines(comparison: Comparison) -> list[str]:
    """Write title, protocols and notes of a suite."""
    suite = comparison.suite
    source = f"{suite.paper}, table {suite.table}: " if suite.paper else ""
    source = source.replace("table Figure", "Figure")
    lines = [f"{suite.name}: {source}{suite.title}"]
    if suite.stand_in:
        lines.append(
            f"STAND-IN for {suite.stand_in}, whose data are not available: the same comparison on "
            "other data, so the published figures do not apply"
        )
    if comparison.is_quick:
        lines.append("SMOKE RUN: few rows and epochs; the figures are no measure of the methods")
    lines += [f"{protocol.name}: {protocol.describe()}" for protocol in suite.protocols]
    return lines + [f"note: {note}" for note in suite.notes]


def to_csv(comparison: Comparison) -> str:
    """Write one line per figure."""
    names = [field.name for field in fields(Row) if field.name not in ("values", "seeds")]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["suite", *names, "values", "seeds"])
    for row in comparison.rows:
        cells = ["" if getattr(row, name) is None else getattr(row, name) for name in names]
        values, seeds = (" ".join(map(str, part)) for part in (row.values, row.seeds))
        writer.writerow([comparison.suite.name, *cells, values, seeds])
    return text.getvalue()


def to_markdown(comparison: Comparison, *, level: int = 1) -> str:
    """Write the whole comparison; `level` is that of its heading."""
    first, *others = heading_lines(comparison)
    parts = [f"{'#' * level} {first}", _bullets(others)]
    for table in figure_tables(comparison):
        if table.rows:
            parts += [f"{'#' * (level + 1)} {table.title}", table.markdown()]
    if comparison.rankings:
        blocks = ["\n".join(ranking_lines(ranking)) for ranking in comparison.rankings]
        parts += [f"{'#' * (level + 1)} Ranks", "```\n" + "\n\n".join(blocks) + "\n```"]
    gaps = gap_lines(comparison)
    if gaps:
        parts += [f"{'#' * (level + 1)} Not measured", _bullets(gaps)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


@dataclass(frozen=True)
class Grid:
    """Figures of one metric, for some of the data sets."""

    conditions: tuple[str, ...]  # The columns: data sets, with their scenarios
    methods: tuple[str, ...]  # The rows
    rows: dict[tuple[str, str], Row]  # The figure of a condition and a method, where there is one


def _grids(comparison: Comparison, metric: str) -> list[Grid]:
    """Arrange the figures of a metric in grids of a few data sets; empty if they are listed."""
    scored = [row for row in comparison.rows if row.metric == metric and row.mean is not None]
    conditions = tuple(dict.fromkeys(row.condition for row in scored))
    methods = tuple(dict.fromkeys(row.method for row in comparison.rows))
    is_plain = len({row.protocol for row in comparison.rows}) == 1 and all(
        row.published is None for row in comparison.rows
    )
    if not is_plain or min(len(conditions), len(methods)) < FEWEST:
        return []
    rows = {(row.condition, row.method): row for row in scored}
    return [
        Grid(conditions[at : at + MOST_COLUMNS], methods, rows)
        for at in range(0, len(conditions), MOST_COLUMNS)
    ]


def best_rows(rows: Sequence[Row], sign: int) -> set[Row]:
    """Return the best measured rows of each data set and protocol with several methods."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.mean is not None:
            groups.setdefault((row.condition, row.protocol), []).append(row)
    best: set[Row] = set()
    for group in groups.values():
        top = max(sign * (row.mean or 0.0) for row in group)
        if len(group) > 1:
            best |= {row for row in group if sign * (row.mean or 0.0) == top}
    return best

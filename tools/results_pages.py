"""The pages of results: one per suite, made from the files in benchmarks/results/.

A page has the protocol, the notes, a plot of the average ranks and the tables. Where the tables
are long, each metric has a page of its own, linked from the page of its suite.
"""

from __future__ import annotations

import html
import re
from functools import cache
from pathlib import Path

from labelweave.bench.comparing.comparison import Comparison, Row
from labelweave.bench.comparing.comparison_tables import figure_tables
from labelweave.bench.comparing.method_ranks import TOGETHER, Ranking, friedman_in_words
from labelweave.bench.comparing.stored_results import StoredResults, read_stored
from labelweave.bench.suite import Suite, list_suites
from labelweave.metrics import get_metric
from labelweave.reporting.html import html_table
from labelweave.reporting.report_content import Table

ROOT = Path(__file__).parents[1]
MOST_WORDS = 2500
PAPERS = ("C-GMVAE", "MulSupCon", "CLS", "ANT", "XML0", None)
SORTING = '<script src="../assets/sorting.js"></script>\n'


@cache
def stored_results() -> dict[str, StoredResults]:
    """Read every file of benchmarks/results/, by name."""
    files = sorted((ROOT / "benchmarks/results").glob("*.jsonl"))
    return {path.stem: read_stored(path) for path in files}


def results_pages() -> dict[str, str]:
    """Map the path of each page, below docs/, to its Markdown."""
    pages = {"results/suites.md": _list_of_suites()}
    for name, stored in stored_results().items():
        tables = _tables_by_metric(stored.comparison)
        lines = _heading(stored)
        if count_words("\n".join(lines + _joined(tables))) <= MOST_WORDS:
            pages[f"results/{name}.md"] = "\n".join([*lines, *_joined(tables), SORTING])
            continue
        links = [f"[{_label(metric)}]({_metric_page(name, metric)})" for metric in tables]
        pages[f"results/{name}.md"] = "\n".join([*lines, f"Tables: {', '.join(links)}.", ""])
        for metric, parts in tables.items():
            head = [f"# {name}: {_label(metric)}", "", f"[About this suite]({name}.md). Others: "]
            head[-1] += ", ".join(link for link in links if _metric_page(name, metric) not in link)
            page = [*head, "", *parts, SORTING]
            pages[f"results/{_metric_page(name, metric)}"] = "\n".join(page)
    return pages


def figure(row: Row) -> str:
    """Write mean, deviation and, for fewer than three seeds, the number of seeds."""
    spread = f" ± {row.std:.3f}" if row.n_seeds > 1 else ""
    return f"{row.mean:.3f}{spread}{f' n={row.n_seeds}' if row.n_seeds < 3 else ''}"


def count_words(text: str) -> int:
    """Count the words that a reader sees: markup does not count."""
    return len(re.sub(r"<[^>]*>", " ", text).split())


def _joined(tables: dict[str, list[str]]) -> list[str]:
    return [line for lines in tables.values() for line in lines]


def _metric_page(name: str, metric: str) -> str:
    return f"{name}-{metric.replace('@', '-at-').replace('_', '-')}.md"


def _label(metric: str) -> str:
    return metric if metric == TOGETHER else get_metric(metric).label


def _list_of_suites() -> str:
    """All suites by paper: those with results, and those that wait for data or time."""
    lines = ["# All suites", "", "Each suite is one table or figure of a paper, or a comparison of"]
    lines += ["our own. `labelweave bench run SUITE` measures it again.", ""]
    stored = stored_results()
    for paper in PAPERS:
        lines += [f"## {paper or 'All methods on vectors'}", ""]
        for suite in list_suites():
            if suite.paper != paper:
                continue
            names = [name for name, one in stored.items() if one.comparison.suite == suite]
            for name in names or [""]:
                what = (
                    f"{suite.title}{', ' + stored[name].run if name and stored[name].run else ''}"
                )
                link = f"[{name}]({name}.md): {what}" if name else f"{suite.name}: {what}"
                waiting = "" if name else f" (not measured{_needs(suite)})"
                lines.append(f"- {link}{waiting}")
        lines.append("")
    return "\n".join(lines)


def _needs(suite: Suite) -> str:
    external = [entry.name for entry in suite.data if entry.external is not None]
    return f"; needs {', '.join(external)}" if external else ""


def _heading(stored: StoredResults) -> list[str]:
    comparison = stored.comparison
    suite = comparison.suite
    source = "" if suite.paper is None else f"{suite.paper}, table {suite.table}. "
    source = source.replace("table Figure", "Figure")
    run = f" This page shows {stored.run}." if stored.run else ""
    lines = [
        f"# {stored.name}: {suite.title}",
        "",
        f"{source}`labelweave bench run {suite.name}` measures it; `labelweave bench compare "
        f"{suite.name}` prints these tables.{run}",
        "",
    ]
    if suite.stand_in:
        lines += [
            f"A stand-in for `{suite.stand_in}`, whose data cannot be handed on: the same "
            "comparison on other data. The published figures do not apply.",
            "",
        ]
    lines += [f"- {protocol.name}: {protocol.describe()}" for protocol in suite.protocols]
    lines += [f"- {note.replace('](methods/', '](../methods/')}" for note in suite.notes]
    missing = _not_measured(comparison)
    lines += [f"- not measured: {', '.join(missing)}"] if missing else []
    lines.append(
        f"- {stored.n_cells:,} cells with scores, {stored.date}; {'; '.join(stored.facts)}"
    )
    if comparison.n_old:
        lines.append(
            f"- {comparison.n_old} scores are of older code or data than those beside them"
        )
    return [*lines, "", *_ranks(comparison)]


def _not_measured(comparison: Comparison) -> list[str]:
    """Name the data sets and methods of a suite without a single figure."""
    suite, scored = comparison.suite, [row for row in comparison.rows if row.mean is not None]
    data, methods = {row.dataset for row in scored}, {row.method for row in scored}
    names = [entry.name for entry in suite.data if entry.name not in data]
    return names + [entry.name for entry in suite.methods if entry.name not in methods]


def _ranks(comparison: Comparison) -> list[str]:
    """Plot the ranks over all metrics (or the only one), and list the ranks of each metric."""
    rankings = [one for one in comparison.rankings if len(one.datasets) > 1]
    if not rankings:
        return []
    lines = ["## Average ranks", ""]
    shown = [one for one in rankings if one.metric == TOGETHER] or rankings[:1]
    for ranking in shown:
        left_out = f"; without {', '.join(ranking.left_out)}" if ranking.left_out else ""
        lines += [
            f"{_label(ranking.metric)}, {ranking.protocol}: {friedman_in_words(ranking)}{left_out}."
            " Methods connected by a line do not differ significantly (Nemenyi, 5%)."
            * bool(ranking.groups),
            "",
            rank_plot(ranking),
            "",
        ]
        if better := _significant(ranking):
            lines += [f"Wilcoxon's tests with Holm's correction: {better}.", ""]
    if len(rankings) > 1:
        methods = dict.fromkeys(method for one in rankings for method in one.average_ranks)
        columns = [f"{_label(one.metric)}, {one.protocol}" for one in rankings]
        rows = [
            [method, *(one.average_ranks.get(method) for one in rankings)] for method in methods
        ]
        lines += [html_table(Table("Average ranks", ["method", *columns], rows, digits=2)), ""]
    return lines


def _significant(ranking: Ranking) -> str:
    """Say which methods Wilcoxon's test finds different, grouped by the better one."""
    pairs: dict[str, list[str]] = {}
    for pair in ranking.pairs:
        if pair["different"]:
            ordered = sorted((pair["first"], pair["second"]), key=ranking.average_ranks.__getitem__)
            pairs.setdefault(ordered[0], []).append(ordered[1])
    return "; ".join(f"{one} is better than {', '.join(others)}" for one, others in pairs.items())


def _tables_by_metric(comparison: Comparison) -> dict[str, list[str]]:
    """Map each metric to the lines of its tables."""
    scenarios = {row.scenario for row in comparison.rows}
    common = f", {next(iter(scenarios))}" if len(scenarios) == 1 and "" not in scenarios else ""
    tables: dict[str, list[str]] = {metric: [] for metric in comparison.suite.metrics}
    for table in figure_tables(comparison):
        metric = re.search(r"\(([\w@]+), \w+ is better\)", table.title)[1]
        if table.rows:
            title = f"## {table.title}{common}" if not tables[metric] else ""
            columns = [name.removesuffix(common) for name in table.columns]
            rows = [[cells[0].removesuffix(common), *cells[1:]] for cells in table.rows]
            tables[metric] += [title, "", html_table(Table(table.title, columns, rows)), ""]
    return {metric: lines for metric, lines in tables.items() if lines}


def rank_plot(ranking: Ranking) -> str:
    """Draw the average ranks as dots, the best at the top, with the groups of equal methods."""
    ranks = ranking.average_ranks
    left, right, step, top = 230, 560, 20, 26
    last = max(len(ranks), 2)

    def x(rank: float) -> float:
        return round(left + (rank - 1) / (last - 1) * (right - left), 1)

    y = {method: top + 16 + step * place for place, method in enumerate(ranks)}
    height = top + 16 + step * len(ranks)
    parts = [
        f'<line x1="{left}" y1="{top}" x2="{right}" y2="{top}" stroke="currentColor"/>',
        *(
            f'<text x="{x(rank)}" y="{top - 8}" text-anchor="middle">{rank}</text>'
            for rank in sorted({1, (last + 1) // 2, last})
        ),
    ]
    for place, group in enumerate(ranking.groups):
        at = right + 50 + 8 * place
        ends = f'y1="{y[group[0]] - 4}" x2="{at}" y2="{y[group[-1]] - 4}"'
        parts.append(f'<line x1="{at}" {ends} stroke="currentColor" stroke-width="3"/>')
    for method, rank in ranks.items():
        at = y[method] - 4
        parts += [
            f'<text x="{left - 12}" y="{y[method]}" text-anchor="end">{html.escape(method)}</text>',
            f'<line x1="{left}" y1="{at}" x2="{x(rank)}" y2="{at}" stroke="currentColor" '
            'stroke-opacity="0.25"/>',
            f'<circle cx="{x(rank)}" cy="{at}" r="4" fill="#009485"/>',
            f'<text x="{x(rank) + 8}" y="{y[method]}">{rank:.2f}</text>',
        ]
    width = right + 60 + 8 * len(ranking.groups)
    label = f"Average ranks by {_label(ranking.metric)}, {ranking.protocol}"
    size = f'viewBox="0 0 {width} {height}" style="max-width: {width}px; width: 100%"'
    about = f'role="img" aria-label="{html.escape(label)}" font-size="12" fill="currentColor"'
    return f"<div><svg {size} {about}>{''.join(parts)}</svg></div>"

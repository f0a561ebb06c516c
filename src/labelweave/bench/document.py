"""`docs/results.md`: every figure that a folder of results holds, beside the published one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from os import PathLike

from labelweave.bench.comparison import Comparison, compare, latest
from labelweave.bench.records import Record
from labelweave.bench.store import Store, read_results
from labelweave.bench.suite import Suite, list_suites
from labelweave.bench.tables import to_markdown

__all__ = ["write_document"]


def write_document(folder: str | PathLike[str]) -> str:
    """The results of a folder as Markdown: shipped suites first, then the user's own.

    Suites without a finished cell are listed at the end with what they miss.
    """
    records = read_results(folder, full=False)
    shipped = list_suites()
    known = {suite.name for suite in shipped}
    suites = [*shipped, *(suite for suite in Store(folder).suites() if suite.name not in known)]
    compared = [(suite, compare(records, suite)) for suite in suites]
    measured = [one for _, one in compared if _has_scores(one)]
    empty = [(suite, one) for suite, one in compared if not _has_scores(one)]
    parts = [_head(measured, records)]
    parts += [to_markdown(comparison, level=2) for comparison in measured]
    if empty:
        parts.append(
            "## Not measured yet\n\n" + "\n".join(_missing(*pair) for pair in empty) + "\n"
        )
    return "\n".join(parts)


def _has_scores(comparison: Comparison) -> bool:
    return any(row.mean is not None for row in comparison.rows)


def _head(measured: Sequence[Comparison], records: Sequence[Record]) -> str:
    used, _ = latest(records)
    spent = sum(record["seconds"]["cpu"] for record in used)
    lines = [
        "# Results",
        "",
        "Written by `labelweave bench document`; do not edit. Each suite is run by",
        "`labelweave bench run SUITE` and compared by `labelweave bench compare SUITE`; see",
        "[bench.md](bench.md). A figure is the mean ± standard deviation over n seeds, with the",
        "bootstrap interval (95%) of the mean; two protocols stay two columns. Published figures",
        "are copied from the papers.",
        "",
        f"- {len(used)} cells, {spent / 3600:.1f} hours of processor time",
    ]
    lines += [f"- {line}" for line in _facts(used)]
    lines += ["", "| suite | what | cells with scores |", "|---|---|---|"]
    for one in measured:
        n_scored = sum(len(row.values) for row in one.rows if row.metric == one.suite.metrics[0])
        mark = " (stand-in)" if one.suite.stand_in else ""
        lines.append(f"| {one.suite.name}{mark} | {one.suite.title} | {n_scored} |")
    return "\n".join(lines) + "\n"


def _facts(records: Sequence[Record]) -> list[str]:
    """Machines and versions, the most frequent first."""
    machines = Counter(
        f"{one['machine'].get('processor')}, {one['machine'].get('cores')} cores, "
        f"{one['machine'].get('memory_gb')} GB, {one['machine'].get('threads', 1)} thread a cell"
        for one in records
    )
    versions = Counter(
        ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        for one in records
    )
    return [
        *(f"hardware: {text} ({n} cells)" for text, n in machines.most_common()),
        *(f"versions: {text} ({n} cells)" for text, n in versions.most_common()),
    ]


def _missing(suite: Suite, comparison: Comparison) -> str:
    gaps = ", ".join(f"{gap.what} {gap.name}" for gap in comparison.gaps)
    return f"- {suite.name}: {suite.title}" + (f" (not available: {gaps})" if gaps else "")

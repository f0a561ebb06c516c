"""`docs/results.md`: every figure that a folder of results holds, beside the published one."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from os import PathLike

from labelweave.bench.comparing.comparison import Comparison, compare, latest
from labelweave.bench.comparing.comparison_tables import to_markdown
from labelweave.bench.storing.records import Record
from labelweave.bench.storing.store import Store, read_results
from labelweave.bench.suite import Suite, list_suites

__all__ = ["write_document"]

_HEAD = """# Results

Written by `labelweave bench document`; do not edit. Each suite is run by
`labelweave bench run SUITE` and compared by `labelweave bench compare SUITE`; see
[bench.md](bench.md). A figure is the mean ± standard deviation over n seeds, with the
bootstrap interval (95%) of the mean; two protocols stay two columns. Published figures
are copied from the papers.

| suite | what | cells with scores |
|---|---|---|
"""
_EMPTY = "## Not measured yet"


def write_document(folder: str | PathLike[str], earlier: str = "") -> str:
    """The results of a folder as Markdown: shipped suites first, then the user's own.

    Suites without a finished cell are listed at the end with what they miss.

    Parameters
    ----------
    folder : path
    earlier : str, default=""
        A document that was written before. What it says of suites that this folder has no
        scores of is kept, so that one document can hold the results of several machines.
    """
    records = read_results(folder, full=False)
    shipped = list_suites()
    known = {suite.name for suite in shipped}
    suites = [*shipped, *(suite for suite in Store(folder).suites() if suite.name not in known)]
    compared = [(suite, compare(records, suite)) for suite in suites]
    facts = _facts(latest(records)[0])
    sections = _sections(earlier)
    for suite, one in compared:
        if _has_scores(one):
            sections[suite.name] = _section(one, facts)
    order = [suite.name for suite in suites]
    own = [name for name in sections if name not in order]
    written = [name for name in (*order, *own) if name in sections]
    lines = [_in_contents(name, sections[name]) for name in written]
    parts = [_HEAD + "\n".join(lines) + "\n", *(sections[name] for name in written)]
    empty = [pair for pair in compared if pair[0].name not in sections]
    if empty:
        parts.append(f"{_EMPTY}\n\n" + "\n".join(_missing(*pair) for pair in empty) + "\n")
    return "\n".join(parts)


def _has_scores(comparison: Comparison) -> bool:
    return any(row.mean is not None for row in comparison.rows)


def _section(comparison: Comparison, facts: Sequence[str]) -> str:
    """What is said of a suite: its heading, how it was measured, then the tables."""
    suite = comparison.suite
    first = [row for row in comparison.rows if row.metric == suite.metrics[0]]
    n_scored = sum(len(row.values) for row in first)
    heading, _, rest = to_markdown(comparison, level=2).partition("\n")
    stated = [f"cells with scores: {n_scored}", *facts]
    return "\n".join([heading, "", *(f"- {line}" for line in stated), rest.lstrip("\n")])


def _sections(document: str) -> dict[str, str]:
    """Suites to what a document says of them.

    >>> _sections("# Results\\n\\n## one: title\\n\\ntext\\n\\n## Not measured yet\\n")
    {'one': '## one: title\\n\\ntext\\n'}
    """
    parts = re.split(r"^(?=## )", document, flags=re.MULTILINE)[1:]
    return {
        part[3:].partition(":")[0]: part.rstrip("\n") + "\n"
        for part in parts
        if not part.startswith(_EMPTY)
    }


def _in_contents(name: str, section: str) -> str:
    """The line of a suite in the table at the top."""
    title = section.partition("\n")[0].partition(": ")[2]
    counted = re.search(r"^- cells with scores: (\d+)$", section, flags=re.MULTILINE)
    return f"| {name} | {title} | {counted[1] if counted else '-'} |"


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

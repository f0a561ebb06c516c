"""The page "What replicated": a row per claim of the five papers, from stored results.

The claims are in `replication.toml`. Each says that one line of a table is better than others. The
page counts the places of the table (data set, scenario and metric) at which that is so, in the
published figures and in ours. The verdicts are written by hand in the same file.
"""

from __future__ import annotations

import json
import statistics
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from labelweave.bench.comparing.comparison import Row, compare
from labelweave.bench.comparing.published import published_figures
from labelweave.bench.comparing.stored_results import read_stored
from labelweave.bench.storing.cell_file import unpack
from labelweave.bench.suite import Suite, load_suite
from labelweave.exceptions import DataFileError
from labelweave.metrics import get_metric

RANK = "average rank"
RESULTS = Path(__file__).parents[1] / "benchmarks/results"
CLAIMS = Path(__file__).with_name("replication.toml")
HEAD = """# What replicated

One row per claim of the five papers. A claim says that one line of a table is better than others.
Its row counts the places (data set, setting and metric) at which the line is better than the best
of the others, and the mean difference, positive where the line is better. Where the paper compares
average ranks over its metrics, so does the row. "Ours" are stored cells of the named suite,
measured with the method as published, under the paper's protocol where it was measured. A stand-in
makes the same comparison on other data. `python tools/replication_page.py` prints this page from
`tools/replication.toml` and `benchmarks/results/`; `labelweave bench run SUITE` measures a suite
again. Figures are means of three seeds unless n says otherwise. "Against" names the compared lines
where not all of the paper's were measured ("ours": with this library's settings), "with" a smaller
form of the method than the published one. A claim without a suite was not measured.
"""

Figures = Mapping[tuple[Any, ...], Mapping[str, float]]  # place, with the metric last, to lines


class Tally(NamedTuple):
    """At how many places a line is better than the best of others, and by how much on average."""

    better: int
    places: int
    difference: float

    def __str__(self) -> str:
        return f"{self.better} of {self.places}, {self.difference:+.3f}"


def tally(figures: Figures, line: str, than: Sequence[str]) -> Tally | None:
    """Compare a line with the best of others at each place that has them all; None without any.

    Without `than`, the others are all other lines.
    """
    differences = []
    for place, scores in figures.items():
        sign = -1 if place[-1] == RANK else get_metric(place[-1]).sign
        others = than or [name for name in scores if name != line]
        if line in scores and others and all(name in scores for name in others):
            best = max(sign * scores[name] for name in others)
            differences.append(sign * scores[line] - best)
    if not differences:
        return None
    n_better = sum(difference > 0 for difference in differences)
    return Tally(n_better, len(differences), statistics.fmean(differences))


def by_rank(figures: Figures, lines: Sequence[str]) -> Figures:
    """Replace the metrics of each place by the average rank of these lines over the metrics."""
    ranks: dict[tuple[Any, ...], list[Any]] = {}
    for (*place, metric), scores in figures.items():
        if all(name in scores for name in lines):
            values = [-get_metric(metric).sign * scores[name] for name in lines]
            ranks.setdefault((*place, RANK), []).append(rankdata(values))
    return {
        place: dict(zip(lines, np.mean(of_metrics, axis=0).tolist(), strict=True))
        for place, of_metrics in ranks.items()
    }


def compared(claim: Mapping[str, Any], figures: Figures, line: str, than: Sequence[str]) -> Any:
    """Compare by each metric or, where the claim says so, by average ranks over the metrics."""
    return tally(by_rank(figures, [line, *than]) if claim.get("by_rank") else figures, line, than)


def published(claim: Mapping[str, Any]) -> Figures:
    """Collect the published figures of a claim's table."""
    by_setting = "published_line" in claim
    places: dict[tuple[Any, ...], dict[str, float]] = {}
    for one in published_figures():
        is_in_table = (one.paper, one.table) == (claim["paper"], claim["table"])
        if is_in_table and one.metric in claim["metrics"]:
            name = f"{one.method} | {one.setting}" if by_setting else one.method
            add(places, claim, (one.dataset, one.setting, one.metric), name, one.value)
    if not by_setting:
        return places
    merged: dict[tuple[Any, ...], dict[str, float]] = {}
    for (dataset, _, metric), scores in places.items():
        merged.setdefault((dataset, metric), {}).update(scores)
    return merged


def add(
    places: dict[tuple[Any, ...], dict[str, float]],
    claim: Mapping[str, Any],
    place: tuple[str, str, str],
    name: str,
    value: float,
) -> None:
    """Put a figure at its place; where a claim compares two scenarios they share a place."""
    dataset, scenario, metric = place
    if "line_scenario" in claim:
        wanted = "line" if name == claim["line"] else "than"
        if scenario != claim[f"{wanted}_scenario"]:
            return
        scenario = ""
    places.setdefault((dataset, scenario, metric), {})[name] = value


class Measured(NamedTuple):
    """Our comparison: where it was measured, and the smallest number of seeds of a figure in it."""

    suite: str
    protocol: str
    result: Tally
    n_seeds: int


def measured(claim: Mapping[str, Any]) -> Measured | None:
    """Compare the stored figures of the first suite and protocol that have all lines."""
    line = claim.get("measured_line", claim["line"])
    than = claim.get("measured_than") or claim.get("than") or published_names(claim)
    for suite in claim["suites"]:
        if "smaller_form" not in claim and not is_published_form(load_suite(suite), line):
            continue
        for protocol in ("as-published", "honest"):
            rows = [
                row
                for row in rows_with_settings_of(suite)
                if row.protocol == protocol and row.metric in claim["metrics"]
                if row.method in (line, *than) and row.mean is not None
            ]
            places: dict[tuple[Any, ...], dict[str, float]] = {}
            for row in rows:
                place = (row.dataset, row.scenario, row.metric)
                add(places, claim, place, row.method, row.mean)
            if result := compared(claim, places, line, than):
                return Measured(suite, protocol, result, fewest_seeds(rows, line, than))
    return None


def fewest_seeds(rows: Iterable[Row], line: str, than: Sequence[str]) -> int:
    """Return the smallest number of seeds on the data sets that have all lines."""
    seeds: dict[tuple[str, str], dict[str, int]] = {}
    for row in rows:
        of_lines = seeds.setdefault((row.dataset, row.metric), {})
        of_lines[row.method] = min(row.n_seeds, of_lines.get(row.method, row.n_seeds))
    return min(
        n_seeds
        for of_lines in seeds.values()
        if {line, *than} <= of_lines.keys()
        for n_seeds in of_lines.values()
    )


@cache
def rows_with_settings_of(suite: str) -> tuple[Row, ...]:
    """Return the figures of stored cells that have exactly the settings of the suite today.

    The pages of results also show cells of earlier settings, by the names of their lines; here they
    would stand for a form that was not measured. A file of aggregated figures has no settings: its
    lines count where its header says that they may be taken by their names.
    """
    path = RESULTS / f"{suite}.jsonl"
    if not path.exists():
        return ()
    with path.open(encoding="utf-8") as lines:
        header = json.loads(next(lines))
    if header.get("by_name"):
        return read_stored(path).comparison.rows
    try:
        records = unpack(path).records
    except DataFileError:  # a file of aggregated figures
        return ()
    return compare(records, load_suite(suite)).rows


def is_published_form(suite: Suite, line: str) -> bool:
    """Return whether a suite starts the method of a line from its published settings."""
    return any(entry.published for entry in suite.methods if entry.name == line)


def published_names(claim: Mapping[str, Any]) -> list[str]:
    """Name the other lines of the published table: our further methods are not in the claim."""
    names = {name for scores in published(claim).values() for name in scores}
    return sorted(names - {claim["line"]})


def described(claim: Mapping[str, Any], ours: Measured | None) -> str:
    """Write our counts, with what differs from the published comparison."""
    if ours is None:
        return "-"
    text = str(ours.result)
    if "measured_than" in claim:
        text += f"; against {'; '.join(claim['measured_than'])}"
    if "smaller_form" in claim:
        text += f"; with {claim['smaller_form']}"
    return text + (f"; n={ours.n_seeds}" if ours.n_seeds < 3 else "")


def replication_page() -> str:
    """Write the page as Markdown."""
    claims: Iterable[dict[str, Any]] = tomllib.loads(CLAIMS.read_text("utf-8"))["claims"]
    lines = [
        HEAD,
        "| claim | table | the paper | ours | suite, protocol | verdict |",
        "|---" * 6 + "|",
    ]
    for claim in claims:
        line = claim.get("published_line", claim["line"])
        than = claim.get("published_than", claim.get("than", []))
        paper = compared(claim, published(claim), line, than)
        ours = measured(claim)
        link = f"[{ours.suite}](../results/{ours.suite}.md), {ours.protocol}" if ours else "-"
        cells = [claim["claim"], f"{claim['paper']} {claim['table']}"]
        cells += [str(paper or "a plot"), described(claim, ours), link]
        cells += [claim.get("verdict", "Not measured.")]
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(replication_page())

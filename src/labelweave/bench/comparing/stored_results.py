"""Stored results of a suite: a file of single cells, or of figures whose cells are gone.

`benchmarks/results/` holds one file per suite, and the pages of results are made from them. A file
of cells (:mod:`labelweave.bench.storing.cell_file`) has everything. A file of figures has only
means, as lines of JSON::

    {"labelweave": "bench figures", "schema": 1, "suite": "ant-2", "date": "2026-11-17", ...}
    ["emotions", "", "BL", "honest", {"map": [4, 0.7273, 0.0765, 0.6534, 0.7727]}]
    {"ranking": {"metric": "map", "protocol": "honest", "average_ranks": {"ANT": 1.5}, ...}}

A list is the figures of one data set, scenario, method and protocol: for each metric the number of
seeds, the mean and, where there are several seeds, their standard deviation and the 95% interval
of the mean. Rankings are stored too, because they were computed before the means were rounded.
Figures are found by the names of the suite, so that the parameters of a method may be renamed.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from labelweave.bench.comparing.comparison import (
    Comparison,
    Place,
    Row,
    latest,
    places_by_identity,
    rank_rows,
    rows_of,
    table_places,
)
from labelweave.bench.comparing.method_ranks import Ranking
from labelweave.bench.comparing.published import Figure, Published
from labelweave.bench.storing.cell_file import unpack
from labelweave.bench.storing.records import SCHEMA, Record
from labelweave.bench.suite import load_suite
from labelweave.exceptions import DataFileError
from labelweave.metrics.significance import FriedmanResult, nemenyi_groups

FORMAT = "bench figures"
_NAN = float("nan")


@dataclass(frozen=True)
class StoredResults:
    """The results of one file."""

    name: str  # The stem of the file: the suite, or the suite and which of its runs
    # Figures and rankings. Its gaps are empty: what is available here does not matter.
    comparison: Comparison
    run: str  # Which run of the suite this is; "" for the only or the newest one
    n_cells: int  # Number of cells with scores
    date: str  # When the last cell was finished or, for figures, when they were written down
    facts: tuple[str, ...]  # Machines and versions


def read_stored(path: str | PathLike[str]) -> StoredResults:
    """Read a file of cells or of figures.

    * `path`: A file of `benchmarks/results/`.
    """
    path = Path(path)
    return _read_figures(path) if holds_figures(path) else _read_cells(path)


def holds_figures(path: str | PathLike[str]) -> bool:
    """Return whether a file of results has means only, without cells."""
    try:
        with Path(path).open(encoding="utf-8") as lines:
            header = json.loads(next(lines, "null"))
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except ValueError:  # neither form: whoever reads its cells names the mistake
        return False
    return isinstance(header, dict) and header.get("labelweave") == FORMAT


def _read_cells(path: Path) -> StoredResults:
    """Aggregate single cells; one of other settings stands where the names in its record say."""
    packed = unpack(path)
    own = {suite.name: suite for suite in packed.suites}
    suite = own.get(path.stem) or load_suite(path.stem)
    records, n_old = latest(packed.records)
    known = places_by_identity(suite)
    cells: dict[Place, list[Record]] = {}
    for one in records:
        named = (one["dataset"], one["scenario"], one["method_name"], one["protocol"])
        for place in known.get(one["identity"], [named]):
            cells.setdefault(place, []).append(one)
    rows = rows_of(suite, cells, Published(suite))
    comparison = Comparison(suite, rows, rank_rows(rows), (), (), n_old)
    n_cells = sum(record["error"] is None for record in records)
    date = max(record["finished"] for record in records).partition("T")[0]
    return StoredResults(path.stem, comparison, "", n_cells, date, _facts(records))


def _facts(records: Sequence[Record]) -> tuple[str, ...]:
    """Describe machines and versions, the most frequent first."""
    machines = Counter(
        f"{one['machine'].get('processor')}, {one['machine'].get('cores')} cores, "
        f"{one['machine'].get('memory_gb')} GB, {one['machine'].get('threads', 1)} thread per cell"
        for one in records
    )
    versions = Counter(
        ", ".join(f"{name} {version}" for name, version in one["versions"].items())
        for one in records
    )
    return tuple(text for counts in (machines, versions) for text, _ in counts.most_common())


def _read_figures(path: Path) -> StoredResults:
    """Read aggregated figures and their rankings."""
    header: dict[str, Any] = {}
    figures: dict[tuple[Place, str], Sequence[float]] = {}
    rankings: list[Mapping[str, Any]] = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            value = json.loads(line)
            if number == 1:
                header = value
                if header["schema"] != SCHEMA:
                    raise DataFileError("another version wrote this file", path=path, line=1)
            elif isinstance(value, list):
                data, scenario, method, protocol, metrics = value
                place = (data, scenario, method, protocol)
                figures |= {(place, metric): numbers for metric, numbers in metrics.items()}
            else:
                rankings.append(value["ranking"])
        except (ValueError, KeyError, TypeError) as error:
            reason = f"this is no line of figures ({error})"
            raise DataFileError(reason, path=path, line=number) from None
    suite = load_suite(header["suite"])
    rows = tuple(
        _row(place, metric, figures.get((place, metric), ()), published)
        for place, metric, published in table_places(suite, Published(suite))
        if (place, metric) in figures or published is not None
    )
    ranked = tuple(_ranking(one, rows) for one in rankings)
    return StoredResults(
        path.stem,
        Comparison(suite, rows, ranked, (), (), header.get("older", 0)),
        header.get("run", ""),
        header["cells"],
        header["date"],
        (header["hardware"], header["versions"]),
    )


def _row(place: Place, metric: str, numbers: Sequence[float], published: Figure | None) -> Row:
    data, scenario, method, protocol = place
    padded: list[float | None] = [*numbers, None, None, None, None, None]
    n_seeds, mean, std, low, high = padded[:5]
    return Row(
        dataset=data,
        scenario=scenario,
        method=method,
        metric=metric,
        protocol=protocol,
        values=(),
        seeds=(),
        n_seeds=int(n_seeds or 0),
        n_failed=0,
        mean=mean,
        std=0.0 if n_seeds == 1 else std,
        low=low,
        high=high,
        published=None if published is None else published.value,
        published_std=None if published is None else published.std,
    )


def _ranking(stored: Mapping[str, Any], rows: Sequence[Row]) -> Ranking:
    """Rebuild a ranking; its data sets are those that all its methods have figures on."""
    ranks, left_out = stored["average_ranks"], stored.get("left_out", [])
    scored = [row for row in rows if row.protocol == stored["protocol"] and row.mean is not None]
    conditions = dict.fromkeys(row.condition for row in scored if row.condition not in left_out)
    difference = stored.get("critical_difference")
    p_value = stored.get("friedman_p")
    return Ranking(
        metric=stored["metric"],
        protocol=stored["protocol"],
        average_ranks=ranks,
        datasets=tuple(conditions),
        friedman=None if p_value is None else FriedmanResult(_NAN, _NAN, _NAN, p_value),
        critical_difference=difference,
        groups=[] if difference is None else nemenyi_groups(ranks, difference),
        pairs=[
            {"first": first, "second": second, "p_holm": p, "different": True}
            for first, second, p in stored.get("different", ())
        ],
        left_out=tuple(left_out),
    )

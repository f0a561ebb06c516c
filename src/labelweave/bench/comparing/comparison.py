"""Measured figures beside the published ones, each under its protocol."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labelweave.bench.comparing.method_ranks import Ranking, rank_methods, rank_together
from labelweave.bench.comparing.published import Figure, Published
from labelweave.bench.running.plan import Cell, Gap, Quick, all_cells, find_gaps
from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite

__all__ = [
    "Comparison",
    "Place",
    "Row",
    "compare",
    "latest",
    "mean_intervals",
    "places_by_identity",
    "rank_rows",
    "rows_of",
    "standing",
    "table_places",
]

Place = tuple[str, str, str, str]  # data set, scenario, method, protocol


@dataclass(frozen=True)
class Row:
    """One figure: a metric of a method on a data set, under one protocol.

    `mean`, `std` (of the sample, 0 for one seed), `low` and `high` (95% bootstrap interval of the
    mean) are None where there is no score; `published` and `published_std` are None where the
    paper has no figure. `values` and `seeds` are empty where only the mean was stored;
    `n_seeds` is then the number of seeds behind it.
    """

    dataset: str
    scenario: str
    method: str
    metric: str
    protocol: str
    values: tuple[float, ...]
    seeds: tuple[int, ...]
    n_seeds: int
    n_failed: int
    mean: float | None
    std: float | None
    low: float | None
    high: float | None
    published: float | None
    published_std: float | None

    @property
    def condition(self) -> str:
        """Data set and scenario."""
        return f"{self.dataset}, {self.scenario}" if self.scenario else self.dataset


@dataclass(frozen=True)
class Comparison:
    """All figures of a suite.

    Attributes
    ----------
    suite : Suite
    rows : tuple of Row
        In the order of the suite: data set, scenario, method, metric, protocol.
    rankings : tuple of Ranking
        One per metric and protocol and, where there are several metrics, one per protocol over
        all metrics together.
    gaps : tuple of Gap
        Methods and data sets of the suite that are not available here.
    failures : tuple of (description of the cell, error)
    n_old : int
        Number of scores measured with other code or data than the newest score of their figure.
    is_quick : bool
        Whether these are figures of a smoke run, which are no measure of the methods.
    """

    suite: Suite
    rows: tuple[Row, ...]
    rankings: tuple[Ranking, ...]
    gaps: tuple[Gap, ...]
    failures: tuple[tuple[str, str], ...]
    n_old: int = 0
    is_quick: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as values for JSON."""
        return {
            "suite": self.suite.name,
            "title": self.suite.title,
            "stand_in": self.suite.stand_in,
            "quick": self.is_quick,
            "protocols": {one.name: one.settings() for one in self.suite.protocols},
            "rows": [asdict(row) for row in self.rows],
            "rankings": [
                asdict(one) | {"friedman": one.friedman and one.friedman._asdict()}
                for one in self.rankings
            ],
            "gaps": [asdict(gap) for gap in self.gaps],
            "failures": [{"cell": cell, "error": error} for cell, error in self.failures],
            "old": self.n_old,
        }


def compare(
    records: Iterable[Record],
    suite: Suite,
    published: tuple[Figure, ...] | None = None,
    *,
    alpha: float = 0.05,
) -> Comparison:
    """Compare the measured figures of a suite with the published ones.

    Parameters
    ----------
    records : iterable of dict
        Finished cells, as :func:`labelweave.bench.storing.store.read_results` returns them;
        cells of other suites are ignored.
    suite : Suite
    published : tuple of Figure, optional
        Default: the figures of the package.
    alpha : float, default=0.05
        Significance level of the tests.
    """
    places = places_by_identity(suite)
    chosen, n_old = latest(record for record in records if record["identity"] in places)
    cells: dict[Place, list[Record]] = {}
    for record in chosen:
        for place in places[record["identity"]]:
            cells.setdefault(place, []).append(record)
    quick = {cell.identity for cell in all_cells(suite, quick=Quick())}
    rows = rows_of(suite, cells, Published(suite, published))
    return Comparison(
        suite,
        rows,
        rank_rows(rows, alpha),
        find_gaps(suite),
        _failures(cells),
        n_old,
        any(record["identity"] in quick for record in chosen),
    )


def latest(records: Iterable[Record]) -> tuple[list[Record], int]:
    """Keep the newest record of each cell, and count those of older code or data.

    When code or data change, a cell gets a new name and the old record stays. A record with
    scores is preferred to a failed one.
    """
    newest: dict[tuple[str, int], Record] = {}
    for record in records:
        key = (record["identity"], record["seed"])
        if key not in newest or standing(record) > standing(newest[key]):
            newest[key] = record
    versions: dict[str, tuple[str, str, str]] = {}
    for record in newest.values():
        version = (record["finished"], record["code_version"], record["data_checksum"])
        identity = record["identity"]
        versions[identity] = max(versions.get(identity, version), version)
    n_old = sum(
        (record["code_version"], record["data_checksum"]) != versions[record["identity"]][1:]
        for record in newest.values()
    )
    return list(newest.values()), n_old


def standing(record: Record) -> tuple[bool, str]:
    """Key that orders the records of one cell: with scores before failed, then by date."""
    return record["error"] is None, record["finished"]


def places_by_identity(suite: Suite) -> dict[str, list[Place]]:
    """Map the identity of cells to their places in the table; several methods may share one."""
    places: dict[str, list[Place]] = {}
    one_seed = suite.seeds[:1]
    for quick in (None, Quick()):
        for cell in all_cells(suite, quick=quick):
            if cell.seed in one_seed:
                places.setdefault(cell.identity, []).append(_place(cell))
    return places


def _place(cell: Cell) -> Place:
    return cell.data.name, cell.scenario.name, cell.method_name, cell.protocol.name


def table_places(suite: Suite, published: Published) -> Iterator[tuple[Place, str, Figure | None]]:
    """Yield place, metric and published figure of every figure of a suite, in its order."""
    for data in suite.data:
        for scenario in suite.scenarios:
            for method in suite.methods:
                for metric in suite.metrics:
                    figure = published.find(data.name, scenario.name, method.name, metric)
                    for protocol in suite.protocols:
                        place = (data.name, scenario.name, method.name, protocol.name)
                        yield place, metric, figure


def rows_of(
    suite: Suite, cells: Mapping[Place, Sequence[Record]], published: Published
) -> tuple[Row, ...]:
    """Aggregate the records at each place of a suite's table into figures."""
    drafts = [
        (place, metric, sorted(cells.get(place, ()), key=lambda one: one["seed"]), figure)
        for place, metric, figure in table_places(suite, published)
        if place in cells or figure is not None
    ]
    scored = [_scored(records, metric) for _, metric, records, _ in drafts]
    intervals = mean_intervals([values for _, values in scored])
    return tuple(
        Row(
            dataset=place[0],
            scenario=place[1],
            method=place[2],
            metric=metric,
            protocol=place[3],
            values=tuple(values),
            seeds=tuple(seeds),
            n_seeds=len(values),
            n_failed=sum(one["error"] is not None for one in records),
            mean=statistics.fmean(values) if values else None,
            std=None if not values else statistics.stdev(values) if len(values) > 1 else 0.0,
            low=None if interval is None else interval[0],
            high=None if interval is None else interval[1],
            published=None if figure is None else figure.value,
            published_std=None if figure is None else figure.std,
        )
        for (place, metric, records, figure), (seeds, values), interval in zip(
            drafts, scored, intervals, strict=True
        )
    )


def _scored(records: Sequence[Record], metric: str) -> tuple[list[int], list[float]]:
    """Return seeds and scores where the metric is defined."""
    pairs = [(one["seed"], one["scores"].get(metric)) for one in records]
    kept = [(seed, value) for seed, value in pairs if value is not None]
    return [seed for seed, _ in kept], [value for _, value in kept]


def rank_rows(rows: Sequence[Row], alpha: float = 0.05) -> tuple[Ranking, ...]:
    """Rank the methods by each metric, and by all metrics together, under each protocol."""
    tables: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for row in rows:
        if row.mean is not None:
            table = tables.setdefault((row.metric, row.protocol), {})
            table[(row.condition, row.method)] = row.mean
    ranked = [rank_methods(*key, means, alpha=alpha) for key, means in tables.items()]
    for protocol in dict.fromkeys(protocol for _, protocol in tables):
        by_metric = {metric: means for (metric, one), means in tables.items() if one == protocol}
        if len(by_metric) > 1:
            ranked.append(rank_together(protocol, by_metric, alpha=alpha))
    return tuple(ranking for ranking in ranked if ranking is not None)


def _failures(cells: Mapping[Place, Sequence[Record]]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            f"{method} on {data}{f' ({scenario})' if scenario else ''}, seed {record['seed']}, "
            f"{protocol}",
            f"{record['error']['type']}: {record['error']['message']}",
        )
        for (data, scenario, method, protocol), records in cells.items()
        for record in records
        if record["error"] is not None
    )


def mean_intervals(
    samples: Sequence[Sequence[float]],
    *,
    level: float = 0.95,
    n_draws: int = 2000,
    random_state: int = 0,
) -> list[tuple[float, float] | None]:
    """Percentile bootstrap intervals of the mean of each sample.

    A drawn sample is a count of how often each value was drawn: a multinomial. Samples of the
    same length share their draws, so that all their means are one product.

    Parameters
    ----------
    samples : sequence of sequences of float
        Such as the scores of one figure over its seeds.
    level : float, default=0.95
    n_draws : int, default=2000
    random_state : int, default=0

    Returns
    -------
    list of (low, high)
        None for fewer than two values. With three to five seeds an interval is narrower than
        it should be: no mean of drawn values lies outside them.

    Examples
    --------
    >>> [(low, high)] = mean_intervals([[0.5, 0.6, 0.7, 0.8]])
    >>> 0.5 <= low < 0.65 < high <= 0.8
    True
    """
    intervals: list[tuple[float, float] | None] = [None] * len(samples)
    lengths = np.array([len(sample) for sample in samples], dtype=int)
    tails = [(1 - level) / 2, (1 + level) / 2]
    for n in np.unique(lengths[lengths > 1]):
        rng = np.random.default_rng([random_state, int(n)])
        weights = rng.multinomial(n, np.full(n, 1 / n), size=n_draws) / n
        places = np.flatnonzero(lengths == n).tolist()
        values = np.array([samples[place] for place in places], dtype=np.float64)
        low, high = np.quantile(values @ weights.T, tails, axis=1)
        for place, pair in zip(places, zip(low.tolist(), high.tolist(), strict=True), strict=True):
            intervals[place] = pair
    return intervals

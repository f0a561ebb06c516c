"""Measured figures beside the published ones, cell by cell, each under its protocol."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from labelweave.bench.comparing.method_ranks import Ranking, rank_methods, rank_together
from labelweave.bench.comparing.published import Figure, Published
from labelweave.bench.running.plan import Cell, Gap, Quick, all_cells, find_gaps
from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite

__all__ = ["Comparison", "Row", "compare", "latest", "mean_intervals", "standing"]

Place = tuple[str, str, str, str]  # data set, scenario, method, protocol


@dataclass(frozen=True)
class Row:
    """One figure: a metric of a method on a data set, under one protocol.

    `mean`, `std` (of the sample, 0 for one seed), `low` and `high` (bootstrap interval of the
    mean, 95%) are None where there is no score; `published` and `published_std` where the
    paper gives none.
    """

    dataset: str
    scenario: str
    method: str
    metric: str
    protocol: str
    values: tuple[float, ...]
    seeds: tuple[int, ...]
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
        One a metric and protocol; last, where there are several metrics, one of all together.
    gaps : tuple of Gap
        What was asked for and is not available here.
    failures : tuple of (cell in words, error)
    n_old : int
        Scores that were measured with other code or data than the newest of their figure.
    is_quick : bool
        Whether these are figures of a smoke run, which say nothing about the methods.
    """

    suite: Suite
    rows: tuple[Row, ...]
    rankings: tuple[Ranking, ...]
    gaps: tuple[Gap, ...]
    failures: tuple[tuple[str, str], ...]
    n_old: int = 0
    is_quick: bool = False

    def to_dict(self) -> dict[str, Any]:
        """The comparison as values that JSON can hold."""
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
    """Measured and published figures of a suite.

    Parameters
    ----------
    records : iterable of dict
        Finished cells, as :func:`labelweave.bench.storing.store.read_results` gives them; those of
        other suites are passed over.
    suite : Suite
    published : tuple of Figure, optional
        Default: the figures of the package.
    alpha : float, default=0.05
        Level of the tests.

    Returns
    -------
    Comparison
    """
    places = _places(suite)
    chosen, n_old = latest(record for record in records if record["identity"] in places)
    found: dict[Place, list[Record]] = {}
    for record in chosen:
        for place in places[record["identity"]]:
            found.setdefault(place, []).append(record)
    quick = {cell.identity for cell in all_cells(suite, quick=Quick())}
    rows = _rows(suite, found, Published(suite, published))
    return Comparison(
        suite,
        rows,
        _rankings(rows, alpha),
        find_gaps(suite),
        _failures(found),
        n_old,
        any(record["identity"] in quick for record in chosen),
    )


def latest(records: Iterable[Record]) -> tuple[list[Record], int]:
    """The newest record of each cell, and how many are of older code or data than others.

    When code or data change, a cell gets a new name and the old record stays. A record with
    scores goes before a failed one.
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
    """Which of two records of a cell counts, the greater one: with scores, then the newer."""
    return record["error"] is None, record["finished"]


def _places(suite: Suite) -> dict[str, list[Place]]:
    """Identity of cells to where they stand in the table; several methods may share one."""
    found: dict[str, list[Place]] = {}
    one_seed = suite.seeds[:1]
    for quick in (None, Quick()):
        for cell in all_cells(suite, quick=quick):
            if cell.seed in one_seed:
                found.setdefault(cell.identity, []).append(_place(cell))
    return found


def _place(cell: Cell) -> Place:
    return cell.data.name, cell.scenario.name, cell.method_name, cell.protocol.name


def _rows(suite: Suite, found: dict[Place, list[Record]], published: Published) -> tuple[Row, ...]:
    drafts = []
    for data in suite.data:
        for scenario in suite.scenarios:
            for method in suite.methods:
                for metric in suite.metrics:
                    figure = published.find(data.name, scenario.name, method.name, metric)
                    for protocol in suite.protocols:
                        place = (data.name, scenario.name, method.name, protocol.name)
                        cells = sorted(found.get(place, ()), key=lambda one: one["seed"])
                        if cells or figure is not None:
                            drafts.append((place, metric, cells, figure))
    scored = [_scored(cells, metric) for _, metric, cells, _ in drafts]
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
            n_failed=sum(one["error"] is not None for one in cells),
            mean=statistics.fmean(values) if values else None,
            std=None if not values else statistics.stdev(values) if len(values) > 1 else 0.0,
            low=None if interval is None else interval[0],
            high=None if interval is None else interval[1],
            published=None if figure is None else figure.value,
            published_std=None if figure is None else figure.std,
        )
        for (place, metric, cells, figure), (seeds, values), interval in zip(
            drafts, scored, intervals, strict=True
        )
    )


def _scored(cells: Sequence[Record], metric: str) -> tuple[list[int], list[float]]:
    """Seeds and scores where the metric is defined."""
    pairs = [(one["seed"], one["scores"].get(metric)) for one in cells]
    kept = [(seed, value) for seed, value in pairs if value is not None]
    return [seed for seed, _ in kept], [value for _, value in kept]


def _rankings(rows: Sequence[Row], alpha: float) -> tuple[Ranking, ...]:
    tables: dict[tuple[str, str], dict[tuple[str, str], float]] = {}
    for row in rows:
        if row.mean is not None:
            table = tables.setdefault((row.metric, row.protocol), {})
            table[(row.condition, row.method)] = row.mean
    ranked = [rank_methods(*key, means, alpha=alpha) for key, means in tables.items()]
    for protocol in dict.fromkeys(protocol for _, protocol in tables):
        of_metrics = {metric: means for (metric, one), means in tables.items() if one == protocol}
        if len(of_metrics) > 1:
            ranked.append(rank_together(protocol, of_metrics, alpha=alpha))
    return tuple(ranking for ranking in ranked if ranking is not None)


def _failures(found: dict[Place, list[Record]]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            f"{method} on {data}{f' ({scenario})' if scenario else ''}, seed {record['seed']}, "
            f"{protocol}",
            f"{record['error']['type']}: {record['error']['message']}",
        )
        for (data, scenario, method, protocol), records in found.items()
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

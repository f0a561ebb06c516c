"""Average ranks of methods over data sets, and tests of their differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from labelweave.metrics import get_metric
from labelweave.metrics.significance import (
    FriedmanResult,
    friedman_test,
    nemenyi_difference,
    nemenyi_groups,
    ranks,
    wilcoxon_pairs,
)

TOGETHER = "all metrics together"


@dataclass(frozen=True)
class Ranking:
    """Average ranks of the methods by one metric under one protocol."""

    # metric, protocol: The metric may be :data:`TOGETHER`
    metric: str
    protocol: str
    average_ranks: dict[str, float]  # The best first
    # The data sets (and scenarios) that all these methods have a score on
    datasets: tuple[str, ...]
    friedman: FriedmanResult | None  # None for fewer than two data sets or three methods
    critical_difference: float | None  # Of Nemenyi, at `alpha`
    groups: list[list[str]]  # The bars of a critical-difference diagram
    # Wilcoxon's signed-rank tests with Holm's correction, one per pair of methods
    pairs: list[dict[str, Any]]
    left_out: tuple[str, ...] = ()  # Methods or data sets without all scores
    alpha: float = 0.05

    @property
    def label(self) -> str:
        """The name of the metric in tables."""
        return TOGETHER if self.metric == TOGETHER else get_metric(self.metric).label


def rank_methods(
    metric: str,
    protocol: str,
    means: Mapping[tuple[str, str], float],
    *,
    alpha: float = 0.05,
) -> Ranking | None:
    """Rank methods by their mean scores; None if fewer than two methods share a data set."""
    return _ranking(metric, protocol, means, get_metric(metric).greater_is_better, alpha)


def rank_together(
    protocol: str,
    means: Mapping[str, Mapping[tuple[str, str], float]],
    *,
    alpha: float = 0.05,
) -> Ranking | None:
    """Rank methods by all metrics at once.

    On a data set each metric ranks the methods; these are then ranked by the mean of those
    ranks. So a data set counts once, however many metrics there are. Returns None if fewer than two
    methods have all scores on a common data set.

    >>> by_map = {("a", "tree"): 0.9, ("a", "knn"): 0.5, ("b", "tree"): 0.8, ("b", "knn"): 0.6}
    >>> by_loss = {key: 1 - value for key, value in by_map.items()}
    >>> rank_together("honest", {"map": by_map, "hamming_loss": by_loss}).average_ranks
    {'tree': 1.0, 'knn': 2.0}
    """
    first, *others = means.values()
    common = {key for key in first if all(key in other for other in others)}
    datasets, methods, scores = _table({key: first[key] for key in first if key in common})
    rows, columns = _complete_part(np.isfinite(scores))
    kept = [(datasets[i], methods[j]) for i in rows for j in columns]
    shape = (len(rows), len(columns))
    if shape[0] < 1 or shape[1] < 2:
        return None
    by_metric = [
        ranks(
            np.array([table[key] for key in kept]).reshape(shape),
            greater_is_better=get_metric(metric).greater_is_better,
        )
        for metric, table in means.items()
    ]
    mean_ranks = dict(zip(kept, np.mean(by_metric, axis=0).ravel().tolist(), strict=True))
    ranking = _ranking(TOGETHER, protocol, mean_ranks, False, alpha)
    assert ranking is not None  # the table is complete
    asked = dict.fromkeys(name for place in (0, 1) for key in first for name in [key[place]])
    has = {*ranking.datasets, *ranking.average_ranks}
    return replace(ranking, left_out=tuple(name for name in asked if name not in has))


def _table(
    means: Mapping[tuple[str, str], float],
) -> tuple[list[str], list[str], np.ndarray]:
    """Return data sets, methods, and their scores with NaN where there is none."""
    datasets = list(dict.fromkeys(data for data, _ in means))
    methods = list(dict.fromkeys(method for _, method in means))
    table = np.array([[means.get((d, m), np.nan) for m in methods] for d in datasets])
    return datasets, methods, table.reshape(len(datasets), len(methods))


def _ranking(
    metric: str,
    protocol: str,
    means: Mapping[tuple[str, str], float],
    greater_is_better: bool,
    alpha: float,
) -> Ranking | None:
    datasets, methods, table = _table(means)
    rows, columns = _complete_part(np.isfinite(table))
    left_out = [name for i, name in enumerate(datasets) if i not in rows]
    left_out += [name for j, name in enumerate(methods) if j not in columns]
    if len(rows) < 1 or len(columns) < 2:
        return None
    scores, names = table[np.ix_(rows, columns)], [methods[j] for j in columns]
    better = {"greater_is_better": greater_is_better}
    means_of_ranks = ranks(scores, **better).mean(axis=0)
    average = {names[j]: float(means_of_ranks[j]) for j in means_of_ranks.argsort(kind="stable")}
    n, k = scores.shape
    difference = _critical_difference(k, n, alpha) if n >= 2 else None
    return Ranking(
        metric,
        protocol,
        average,
        tuple(datasets[i] for i in rows),
        friedman_test(scores, **better) if n >= 2 and k >= 3 else None,
        difference,
        [] if difference is None else nemenyi_groups(average, difference),
        wilcoxon_pairs(scores, names, alpha=alpha, **better) if n >= 2 else [],
        tuple(left_out),
        alpha,
    )


@cache
def _critical_difference(n_methods: int, n_datasets: int, alpha: float) -> float:
    """Compute Nemenyi's difference once: it is the same for every metric of a suite."""
    return nemenyi_difference(n_methods, n_datasets, alpha=alpha)


def _complete_part(present: np.ndarray) -> tuple[list[int], list[int]]:
    """Select rows and columns without missing scores, by dropping the emptiest in turn."""
    rows, columns = list(range(present.shape[0])), list(range(present.shape[1]))
    while rows and columns:
        part = present[np.ix_(rows, columns)]
        if part.all():
            break
        by_row, by_column = (~part).mean(axis=1), (~part).mean(axis=0)
        if by_column.max() >= by_row.max():
            columns.pop(int(by_column.argmax()))
        else:
            rows.pop(int(by_row.argmax()))
    return rows, columns


def draw_diagram(ranking: Ranking, *, width: int = 72) -> list[str]:
    """Draw a critical-difference diagram as text: the best rank left, bars join equal methods.

    >>> means = {(d, m): s + i for i, d in enumerate("abcdef") for m, s in
    ...          (("tree", 0.9), ("knn", 0.8), ("chance", 0.1))}
    >>> for line in draw_diagram(rank_methods("map", "honest", means), width=40):
    ...     print(line)
    rank 1                                 3
         |----------------|----------------|
         tree 1.00
                          knn 2.00
                                 chance 3.00
         ==================
                          ==================
    critical difference 1.35 (Nemenyi, 5%)
    """
    names, values = list(ranking.average_ranks), list(ranking.average_ranks.values())
    last = max(len(names), 2)
    start, span = 5, width - 6

    def place(rank: float) -> int:
        return start + round((rank - 1) / (last - 1) * span)

    ticks = {place(rank) for rank in range(1, last + 1)}
    axis = "".join("|" if i in ticks else "-" for i in range(start, start + span + 1))
    lines = [f"rank 1{last:>{span}d}", " " * start + axis]
    for name, value in zip(names, values, strict=True):
        text = f"{name} {value:.2f}"
        at = min(place(value), max(start, start + span + 1 - len(text)))
        lines.append(" " * at + text)
    for group in ranking.groups:
        left, right = (place(ranking.average_ranks[group[end]]) for end in (0, -1))
        lines.append(" " * left + "=" * (right - left + 1))
    if ranking.critical_difference is not None:
        lines.append(
            f"critical difference {ranking.critical_difference:.2f} (Nemenyi, {ranking.alpha:.0%})"
        )
    return lines


def friedman_in_words(ranking: Ranking) -> str:
    """Describe the result of the Friedman test in one line."""
    n, k = len(ranking.datasets), len(ranking.average_ranks)
    over = f"{k} methods on {n} data set{'s' * (n > 1)}"
    if ranking.friedman is None:
        return f"{over}: too few for a Friedman test"
    verdict = (
        "they differ" if ranking.friedman.f_p_value <= ranking.alpha else "no difference shown"
    )
    return f"{over}: Friedman (Iman-Davenport) p = {ranking.friedman.f_p_value:.3g}, {verdict}"

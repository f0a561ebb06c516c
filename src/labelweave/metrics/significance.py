"""Compare methods over data sets: average ranks and tests of their differences.

A table of scores (an array or a DataFrame) has one row per data set and one column per method. The
best method of a row has rank 1; methods of equal score share the mean of their ranks. The procedure
is that of [1]_: the Friedman test shows whether the methods differ at all; if so, two methods
differ when their average ranks are further apart than the Nemenyi critical difference, or by
Wilcoxon's signed-rank test with Holm's correction.

References
----------
.. [1] Demsar (2006). Statistical comparisons of classifiers over multiple data sets. JMLR 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from labelweave.exceptions import InputError
from labelweave.labels import is_frame

__all__ = [
    "FriedmanResult",
    "average_ranks",
    "friedman_test",
    "nemenyi_difference",
    "nemenyi_groups",
    "ranks",
    "wilcoxon_holm",
    "wilcoxon_pairs",
]


def ranks(scores: Any, *, greater_is_better: bool = True) -> np.ndarray:
    """Rank of each method on each data set, 1 the best, ties sharing their mean rank.

    Examples
    --------
    >>> ranks([[0.8, 0.9, 0.8], [0.5, 0.7, 0.6]])
    array([[2.5, 1. , 2.5],
           [3. , 1. , 2. ]])
    """
    from scipy.stats import rankdata

    table = _checked(scores)
    return rankdata(-table if greater_is_better else table, axis=1)


def average_ranks(scores: Any, *, greater_is_better: bool = True) -> Any:
    """Average rank of each method over the data sets, the lower the better.

    A Series with one value per method, named as the columns of `scores` (or 0, 1, ...).

    Examples
    --------
    >>> average_ranks([[0.8, 0.9, 0.8], [0.5, 0.7, 0.6]]).tolist()
    [2.75, 1.0, 2.25]
    """
    import pandas as pd

    means = ranks(scores, greater_is_better=greater_is_better).mean(axis=0)
    return pd.Series(means, index=_names(scores, len(means)), name="average rank")


class FriedmanResult(NamedTuple):
    """Outcome of :func:`friedman_test`.

    `statistic` and `p_value` are Friedman's chi-square; `f_statistic` and `f_p_value` are Iman
    and Davenport's less conservative F.
    """

    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float


def friedman_test(
    scores: Any, *, greater_is_better: bool = True, correct_ties: bool = True
) -> FriedmanResult:
    """Test whether the methods differ at all.

    Parameters
    ----------
    scores : array-like or DataFrame of shape (n_datasets, n_methods)
        At least two data sets and three methods.
    greater_is_better : bool, default=True
    correct_ties : bool, default=True
        Divide by the share of the variance that ties leave, as SciPy does; Demsar's formula
        does not.

    Returns
    -------
    FriedmanResult
        Where all methods tie on all data sets the statistics are 0 and the p values 1.

    Examples
    --------
    >>> table = [[0.9, 0.8, 0.7], [0.6, 0.5, 0.4], [0.8, 0.7, 0.5], [0.9, 0.6, 0.7]]
    >>> result = friedman_test(table)
    >>> round(result.statistic, 3), round(result.p_value, 3), round(result.f_statistic, 3)
    (6.5, 0.039, 13.0)
    """
    from scipy import stats

    table = ranks(scores, greater_is_better=greater_is_better)
    n, k = table.shape
    if n < 2 or k < 3:
        raise InputError(
            f"the Friedman test needs at least 2 data sets and 3 methods, not {n} and {k}"
        )
    means = table.mean(axis=0)
    chi2 = 12 * n / (k * (k + 1)) * ((means - (k + 1) / 2) ** 2).sum()
    if correct_ties:
        sizes = np.concatenate([np.unique(row, return_counts=True)[1] for row in table])
        left = 1 - (sizes**3 - sizes).sum() / (n * k * (k**2 - 1))
        chi2 = chi2 / left if left > 0 else 0.0
    room = n * (k - 1) - chi2
    f = (n - 1) * chi2 / room if room > 1e-12 else np.inf  # the same order on all data sets
    return FriedmanResult(
        float(chi2),
        float(stats.chi2.sf(chi2, k - 1)),
        float(f),
        float(stats.f.sf(f, k - 1, (k - 1) * (n - 1))),
    )


def nemenyi_difference(n_methods: int, n_datasets: int, *, alpha: float = 0.05) -> float:
    """Critical difference of average ranks: further apart, two methods differ.

    q sqrt(k (k + 1) / (6 n)), where q is the studentized range for infinitely many degrees of
    freedom divided by the square root of two; `alpha` is the probability of a false difference
    among all pairs.

    Examples
    --------
    >>> round(nemenyi_difference(4, 14), 2)
    1.25
    """
    from scipy.stats import studentized_range

    if n_methods < 2 or n_datasets < 1 or not 0 < alpha < 1:
        raise InputError(
            "a critical difference needs at least 2 methods, 1 data set and alpha between 0 and 1"
        )
    q = studentized_range.ppf(1 - alpha, n_methods, np.inf) / np.sqrt(2)
    return float(q * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def nemenyi_groups(average: Any, difference: float) -> list[list[Any]]:
    """Largest groups of methods whose average ranks all lie within the critical difference.

    The bars of a critical-difference diagram, best first; a group has at least two methods.
    `average` maps each method to its average rank.

    Examples
    --------
    >>> nemenyi_groups({"a": 1.0, "b": 1.8, "c": 2.6, "d": 4.0}, 1.0)
    [['a', 'b'], ['b', 'c']]
    """
    order = sorted(average.items(), key=lambda pair: pair[1])
    names, values = [name for name, _ in order], np.array([rank for _, rank in order])
    ends = np.searchsorted(values, values + difference, side="right")
    return [
        names[start:end]
        for start, end in enumerate(ends)
        if end - start > 1 and (start == 0 or end > ends[start - 1])
    ]


def wilcoxon_holm(scores: Any, *, alpha: float = 0.05, greater_is_better: bool = True) -> Any:
    """Wilcoxon's signed-rank test of every pair of methods, corrected by Holm's procedure.

    Data sets on which two methods tie are left out of their test; a pair that always ties has
    p = 1.

    Parameters
    ----------
    scores : array-like or DataFrame of shape (n_datasets, n_methods)
    alpha : float, default=0.05
    greater_is_better : bool, default=True
        Only used to count wins and losses.

    Returns
    -------
    DataFrame
        One row per pair, the smallest p value first: first, second, wins, losses, ties (of the
        first against the second), p, p_holm and different (p_holm <= alpha).

    Examples
    --------
    >>> import numpy as np
    >>> table = np.array([[1.0, 2.0, 2.5]]) + np.arange(1, 9)[:, None] * [0.01, 0.02, 0.02]
    >>> wilcoxon_holm(table)[["first", "second", "wins", "losses", "different"]]
       first  second  wins  losses  different
    0      0       1     0       8       True
    1      0       2     0       8       True
    2      1       2     0       8       True
    """
    import pandas as pd

    table = _checked(scores)
    pairs = wilcoxon_pairs(
        table,
        _names(scores, table.shape[1]),
        alpha=alpha,
        greater_is_better=greater_is_better,
    )
    return pd.DataFrame(pairs)


def wilcoxon_pairs(
    scores: np.ndarray,
    names: Sequence[Any],
    *,
    alpha: float = 0.05,
    greater_is_better: bool = True,
) -> list[dict[str, Any]]:
    """The rows of :func:`wilcoxon_holm` as dictionaries, without pandas."""
    from scipy.stats import wilcoxon

    sign = 1 if greater_is_better else -1
    rows: list[dict[str, Any]] = []
    for i, j in combinations(range(scores.shape[1]), 2):
        gaps = sign * (scores[:, i] - scores[:, j])
        rows.append(
            {
                "first": names[i],
                "second": names[j],
                "wins": int((gaps > 0).sum()),
                "losses": int((gaps < 0).sum()),
                "ties": int((gaps == 0).sum()),
                "p": float(wilcoxon(gaps).pvalue) if gaps.any() else 1.0,
            }
        )
    rows.sort(key=lambda row: row["p"])
    factors = np.arange(len(rows), 0, -1)
    corrected = np.maximum.accumulate([row["p"] for row in rows] * factors).clip(max=1.0)
    for row, p_holm in zip(rows, corrected.tolist(), strict=True):
        row |= {"p_holm": p_holm, "different": p_holm <= alpha}
    return rows


def _checked(scores: Any) -> np.ndarray:
    table = np.asarray(scores, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
        raise InputError(
            "scores must be a table of data sets (rows) by at least two methods (columns), "
            f"but it has shape {table.shape}"
        )
    if np.isnan(table).any():
        row, column = np.argwhere(np.isnan(table))[0]
        raise InputError(
            f"scores has no value for data set {row}, method {column}: methods are compared on "
            "data sets that all of them were run on"
        )
    return table


def _names(scores: Any, n_methods: int) -> list[Any]:
    return list(scores.columns) if is_frame(scores) else list(range(n_methods))

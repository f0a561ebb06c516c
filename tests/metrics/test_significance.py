"""Average ranks and tests over data sets, against SciPy and Demsar (2006)."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from labelweave.exceptions import InputError
from labelweave.metrics.significance import (
    average_ranks,
    friedman_test,
    nemenyi_difference,
    nemenyi_groups,
    ranks,
    wilcoxon_holm,
)

# Demsar (2006), Table 6: AUC of four variants of C4.5 on fourteen data sets. In the last row but
# one the third and fourth both print as 0.975; the published average ranks and statistics come
# out only if the third is ranked higher, hence its fourth digit here.
PUBLISHED = pd.DataFrame(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],
        [0.957, 0.978, 0.946, 0.970],
    ],
    columns=["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"],
)


def test_published_ranks():
    published = [3.143, 2.000, 2.893, 1.964]
    assert average_ranks(PUBLISHED).to_numpy() == pytest.approx(published, abs=6e-4)
    assert list(average_ranks(PUBLISHED).index) == list(PUBLISHED.columns)


def test_published_friedman_and_iman_davenport():
    result = friedman_test(PUBLISHED, correct_ties=False)
    assert result.statistic == pytest.approx(9.28, abs=0.006)
    assert result.f_statistic == pytest.approx(3.69, abs=0.006)
    assert result.f_p_value < 0.05


def test_friedman_as_scipy():
    theirs = stats.friedmanchisquare(*PUBLISHED.to_numpy().T)
    mine = friedman_test(PUBLISHED)
    assert mine[:2] == pytest.approx((theirs.statistic, theirs.pvalue))


@pytest.mark.parametrize(
    ("alpha", "published"),
    [
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_published_critical_values(alpha, published):
    k = np.arange(2, 11)
    q = [
        nemenyi_difference(methods, 20, alpha=alpha) / np.sqrt(methods * (methods + 1) / 120)
        for methods in k
    ]
    assert q == pytest.approx(published, abs=1.1e-3)


def test_losses_rank_the_other_way_round():
    assert (ranks(PUBLISHED) == ranks(-PUBLISHED, greater_is_better=False)).all()


def test_all_methods_alike():
    result = friedman_test(np.ones((5, 3)))
    assert (result.statistic, result.p_value, result.f_p_value) == (0, 1, 1)
    assert (wilcoxon_holm(np.ones((5, 3))).p_holm == 1).all()


def test_same_order_everywhere_is_the_largest_statistic():
    result = friedman_test(np.tile([1.0, 2.0, 3.0], (6, 1)))
    assert result.statistic == pytest.approx(12)
    assert result.f_statistic == np.inf
    assert result.f_p_value == 0


def test_groups_of_a_diagram():
    average = pd.Series({"d": 4.1, "a": 1.0, "c": 2.0, "b": 1.5})
    assert nemenyi_groups(average, 1.0) == [["a", "b", "c"]]
    assert nemenyi_groups(average, 2.2) == [["a", "b", "c"], ["c", "d"]]
    assert nemenyi_groups(average, 0.1) == []


def test_wilcoxon_with_holm_by_hand():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((12, 3)) + np.array([0, 0.1, 0.6]), columns=list("abc"))
    result = wilcoxon_holm(table, alpha=0.05)
    expected = sorted(
        (stats.wilcoxon(table[i], table[j]).pvalue, i, j) for i, j in ("ab", "ac", "bc")
    )
    assert [tuple(row) for row in result[["p", "first", "second"]].to_numpy()] == expected
    p = [row[0] for row in expected]
    assert result.p_holm.tolist() == pytest.approx(
        [min(1, 3 * p[0]), min(1, max(3 * p[0], 2 * p[1])), min(1, max(3 * p[0], 2 * p[1], p[2]))]
    )
    assert (result.different == (result.p_holm <= 0.05)).all()
    row = result[(result["first"] == "a") & (result["second"] == "c")].iloc[0]
    assert row.wins == (table.a > table.c).sum()
    assert row.wins + row.losses + row.ties == 12


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([[1.0], [2.0]], "at least two methods"),
        ([[1.0, np.nan]], "data set 0, method 1"),
    ],
)
def test_bad_tables(table, message):
    with pytest.raises(InputError, match=message):
        ranks(table)


def test_too_few_for_friedman():
    with pytest.raises(InputError, match="at least 2 data sets and 3 methods"):
        friedman_test([[1.0, 2.0]])
    with pytest.raises(InputError, match="critical difference"):
        nemenyi_difference(1, 3)

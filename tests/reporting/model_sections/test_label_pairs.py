"""Co-occurrence, confusions and outcomes of pairs, against loops over the rows."""

import numpy as np

from labelweave.reporting.model_sections.label_pairs import (
    co_occurrence,
    count_confusions,
    pair_outcomes,
    top_pairs,
)


def test_co_occurrence_pair_by_pair(labels):
    Y, result = labels.to_numpy(), co_occurrence(labels)
    for i in range(5):
        for j in range(5):
            both_known = [r for r in Y if not np.isnan(r[i]) and not np.isnan(r[j])]
            together = sum(r[i] == 1 and r[j] == 1 for r in both_known)
            first, second = (sum(r[k] == 1 for r in both_known) for k in (i, j))
            assert result.together[i, j] == together
            np.testing.assert_allclose(result.share[i, j], together / first if first else np.nan)
            lift = together * len(both_known) / (first * second) if first * second else np.nan
            np.testing.assert_allclose(result.lift[i, j], lift)


def test_most_frequent_pairs(labels):
    together = co_occurrence(labels).together
    pairs = top_pairs(together, 3)
    counts = [together[pair] for pair in pairs]
    every = sorted((together[i, j] for i in range(5) for j in range(i)), reverse=True)
    assert counts == [n for n in every[:3] if n > 0]
    assert all(i < j for i, j in pairs)


def test_confusions_row_by_row(labels, scores):
    Y, predicted = labels.to_numpy(), scores > 0.5
    expected, missed = np.zeros((5, 5)), np.zeros(5)
    for row, chosen in zip(Y, predicted, strict=True):
        for i in range(5):
            if row[i] == 1 and not chosen[i]:
                missed[i] += 1
                for j in range(5):
                    expected[i, j] += row[j] == 0 and chosen[j]
    result = count_confusions(labels, predicted)
    np.testing.assert_array_equal(result.confused, expected)
    np.testing.assert_array_equal(result.missed, missed)
    assert (result.share[missed > 0] <= 1).all()
    assert np.isnan(result.share[missed == 0]).all()


def test_pair_outcomes_row_by_row(labels, scores):
    Y, predicted, pair = labels.to_numpy(), scores > 0.45, (1, 0)
    cases = {(1, 1): "both_predicted", (1, 0): "only_first", (0, 1): "only_second"}
    cases |= {(0, 0): "neither"}
    counts = dict.fromkeys(["both_true", *cases.values(), "one_true", "one_true_both_predicted"], 0)
    for row, chosen in zip(Y, predicted, strict=True):
        (a, b), (p, q) = row[list(pair)], chosen[list(pair)]
        if a == 1 and b == 1:
            counts["both_true"] += 1
            counts[cases[int(p), int(q)]] += 1
        elif {a, b} == {0.0, 1.0}:
            counts["one_true"] += 1
            counts["one_true_both_predicted"] += p and q
    result = pair_outcomes(labels, predicted, [pair])
    assert {name: int(n[0]) for name, n in result.items()} == counts

"""The numbers behind the plots, against slow and obvious re-computations."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.metrics import precision_recall_curve

from labelweave.labels import LabelMatrix, as_labels
from labelweave.metrics import ap_micro, ece, get_metric
from labelweave.reporting.numbers.curves import precision_recall, reliability, threshold_effect
from labelweave.reporting.numbers.examples import choose_examples, describe_rows
from labelweave.reporting.numbers.history import history_panels
from labelweave.reporting.numbers.labels import binned_means, most_frequent, similar_side_by_side
from labelweave.reporting.numbers.pairs import co_occurrence, mistaken_for, pair_outcomes, top_pairs
from labelweave.thresholds.cuts import at_least


@pytest.fixture(params=["known", "unknown", "sparse", "sparse, absent unknown"])
def labels(request):
    """Sixty rows of five dependent labels, one never positive; some entries unknown."""
    rng = np.random.default_rng(3)
    Y = (rng.random((60, 5)) < [0.6, 0.3, 0.2, 0.1, 0.0]).astype(float)
    Y[:, 1] = np.where(rng.random(60) < 0.7, Y[:, 0], Y[:, 1])
    if request.param == "known":
        return as_labels(Y)
    if request.param == "sparse":
        return as_labels(sp.csr_array(Y))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    Y[7] = np.nan  # a row of which nothing is known
    if request.param == "unknown":
        return as_labels(Y)
    stored = sp.coo_array(np.ones_like(Y))
    known = ~np.isnan(Y[stored.row, stored.col])
    rows, columns = stored.row[known], stored.col[known]
    matrix = sp.csr_array((Y[rows, columns], (rows, columns)), shape=Y.shape)
    return LabelMatrix(matrix.astype(np.float32), [f"l{j}" for j in range(5)], absent=np.nan)


@pytest.fixture
def scores(labels):
    """Probabilities that know something of the labels, with ties."""
    rng = np.random.default_rng(4)
    truth = np.nan_to_num(labels.to_numpy(), nan=0.5)
    return (0.6 * rng.random(labels.shape) + 0.4 * truth).round(2)


def cells(Y):
    """Row, column, value of all known entries."""
    return [(i, j, v) for (i, j), v in np.ndenumerate(Y) if not np.isnan(v)]


def test_co_occurrence_pair_by_pair(labels):
    Y, found = labels.to_numpy(), co_occurrence(labels)
    for i in range(5):
        for j in range(5):
            both_known = [r for r in Y if not np.isnan(r[i]) and not np.isnan(r[j])]
            together = sum(r[i] == 1 and r[j] == 1 for r in both_known)
            first, second = (sum(r[k] == 1 for r in both_known) for k in (i, j))
            assert found.together[i, j] == together
            np.testing.assert_allclose(found.share[i, j], together / first if first else np.nan)
            lift = together * len(both_known) / (first * second) if first * second else np.nan
            np.testing.assert_allclose(found.lift[i, j], lift)


def test_pairs_that_meet_most_often(labels):
    together = co_occurrence(labels).together
    pairs = top_pairs(together, 3)
    counts = [together[pair] for pair in pairs]
    every = sorted((together[i, j] for i in range(5) for j in range(i)), reverse=True)
    assert counts == [n for n in every[:3] if n > 0]
    assert all(i < j for i, j in pairs)


def test_mistaken_for_row_by_row(labels, scores):
    Y, guess = labels.to_numpy(), scores > 0.5
    expected, missed = np.zeros((5, 5)), np.zeros(5)
    for row, chosen in zip(Y, guess, strict=True):
        for i in range(5):
            if row[i] == 1 and not chosen[i]:
                missed[i] += 1
                for j in range(5):
                    expected[i, j] += row[j] == 0 and chosen[j]
    found = mistaken_for(labels, guess)
    np.testing.assert_array_equal(found.confused, expected)
    np.testing.assert_array_equal(found.missed, missed)
    assert (found.share[missed > 0] <= 1).all()
    assert np.isnan(found.share[missed == 0]).all()


def test_pair_outcomes_row_by_row(labels, scores):
    Y, guess, pair = labels.to_numpy(), scores > 0.45, (1, 0)
    counts = dict.fromkeys(
        ("together", "both", "only_first", "only_second", "neither", "apart", "joined"), 0
    )
    for row, chosen in zip(Y, guess, strict=True):
        (a, b), (p, q) = row[list(pair)], chosen[list(pair)]
        if a == 1 and b == 1:
            counts["together"] += 1
            name = {(1, 1): "both", (1, 0): "only_first", (0, 1): "only_second", (0, 0): "neither"}
            counts[name[int(p), int(q)]] += 1
        elif {a, b} == {0.0, 1.0}:
            counts["apart"] += 1
            counts["joined"] += p and q
    found = pair_outcomes(labels, guess, [pair])
    assert {name: int(n[0]) for name, n in found.items()} == counts


def test_reliability_bins_are_those_of_the_calibration_error(labels, scores):
    bins = reliability(labels, scores)
    entries = cells(labels.to_numpy())
    for k in range(15):
        low, high = bins.edges[k], bins.edges[k + 1]
        own = [
            (scores[i, j], v)
            for i, j, v in entries
            if low < scores[i, j] <= high or (k == 0 and scores[i, j] == 0)
        ]
        assert bins.entries[k] == len(own)
        if own:
            np.testing.assert_allclose(bins.promised[k], np.mean([p for p, _ in own]))
            np.testing.assert_allclose(bins.happened[k], np.mean([v for _, v in own]))
    gaps = np.nan_to_num(np.abs(bins.promised - bins.happened))
    np.testing.assert_allclose(gaps @ bins.entries / bins.entries.sum(), ece(labels, scores))


def test_precision_recall_is_scikit_learns_on_the_known_entries(labels, scores):
    curve = precision_recall(labels, scores)
    known = cells(labels.to_numpy())
    precision, recall, _ = precision_recall_curve(
        [v for *_, v in known], [scores[i, j] for i, j, _ in known]
    )
    # scikit-learn starts at the lowest score and adds the point (recall 0, precision 1).
    np.testing.assert_allclose(curve.precision, precision[-2::-1])
    np.testing.assert_allclose(curve.recall, recall[-2::-1])
    np.testing.assert_allclose(curve.average_precision, ap_micro(labels, scores))


def test_a_long_curve_is_thinned_and_keeps_its_ends():
    rng = np.random.default_rng(0)
    Y, scores = as_labels((rng.random((3000, 1)) < 0.4).astype(float)), rng.random((3000, 1))
    whole = precision_recall(Y, scores, most_points=10**6)
    thin = precision_recall(Y, scores, most_points=100)
    assert len(whole.recall) == 3000
    assert 90 <= len(thin.recall) <= 101
    assert thin.recall[-1] == 1.0
    assert thin.precision[-1] == whole.precision[-1]
    assert thin.average_precision == whole.average_precision
    points = set(zip(whole.recall, whole.precision, strict=True))
    assert set(zip(thin.recall, thin.precision, strict=True)) <= points


def test_no_curve_without_a_positive():
    assert precision_recall(as_labels(np.zeros((4, 2))), np.full((4, 2), 0.3)) is None


def test_threshold_effect_is_the_metric_at_each_cut(labels, scores):
    cuts = [0.01, 0.2, 0.35, 0.5, 0.77, 0.99]
    effect = threshold_effect(labels, scores, cuts)
    known = ~np.isnan(labels.to_numpy())
    for k, cut in enumerate(cuts):
        sets = at_least(scores, cut)
        for name, values in effect.metrics.items():
            np.testing.assert_allclose(
                values[k], get_metric(name)(labels, Y_pred=sets), err_msg=name
            )
        np.testing.assert_allclose(effect.labels_a_row[k], (sets * known).sum() / 60)
    assert effect.true_labels_a_row == (labels.to_numpy() == 1).sum() / 60


def test_threshold_effect_in_single_precision():
    # 0.3 as float32 is above 0.3 as float64: both sides must be rounded alike.
    Y, scores = as_labels([[1.0]]), np.array([[0.3]], dtype=np.float32)
    assert threshold_effect(Y, scores, [0.3]).metrics["subset_accuracy"].tolist() == [1.0]


def test_examples_are_of_their_kind(labels, scores):
    Y, guess = labels.to_numpy(), scores > 0.5
    chosen = choose_examples(labels, guess, scores, 4)
    wrong = [
        any((v == 1 and not g) or (v == 0 and g) for v, g in zip(*pair, strict=True))
        for pair in zip(Y, guess, strict=True)
    ]
    judged = ~np.isnan(Y).all(axis=1)
    assert chosen.n_wrong == sum(wrong)
    assert chosen.n_right == sum(judged) - sum(wrong)
    assert all(not wrong[i] and (Y[i] == 1).any() for i in chosen.right)
    assert all(wrong[i] for i in [*chosen.wrong, *chosen.surest])
    regret = [
        max([abs(v - s) for v, s, g in zip(Y[i], scores[i], guess[i], strict=True) if v + g == 1])
        for i in chosen.surest
    ]
    assert regret == sorted(regret, reverse=True)


def test_rows_in_words():
    Y = as_labels([[1, 1, 0, np.nan]], names=["a", "b", "c", "d"])
    (example,) = describe_rows(Y, np.array([[1, 0, 1, 1]]), np.array([0]))
    assert example == (0, ["a"], ["b"], ["c"], ["d"])


def test_most_frequent_labels_first(labels):
    positives, _ = labels.counts()
    order = most_frequent(labels, 3)
    assert positives[order].tolist() == sorted(positives, reverse=True)[:3]
    assert 4 not in most_frequent(labels, 5)  # never positive
    assert len(most_frequent(as_labels(np.zeros((2, 3))), 2)) == 2


def test_similar_labels_stand_side_by_side():
    likeness = np.array([[9, 0, 8, 0], [0, 9, 0, 7], [8, 0, 9, 0], [np.nan, 7, 0, 9]], dtype=float)
    order = similar_side_by_side(likeness).tolist()
    assert sorted(order) == [0, 1, 2, 3]
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1
    assert similar_side_by_side(np.ones((2, 2))).tolist() == [0, 1]


def test_bins_leave_undefined_scores_out():
    x, y = binned_means(np.array([5, 1, 3, 0]), np.array([0.5, np.nan, 0.1, 0.9]), n_bins=8)
    assert x.tolist() == [3, 5]
    assert y.tolist() == [0.1, 0.5]


def test_history_of_two_stages():
    history = pd.DataFrame(
        {
            "stage": ["pretraining", "pretraining", "probe"],
            "epoch": [1, 2, 1],
            "loss": [3.0, 2.0, 1.0],
            "contrast": [3.0, 2.0, np.nan],
            "bce": [np.nan, np.nan, 1.0],
            "val_map": [np.nan, np.nan, 0.5],
            "test_map": [np.nan, 0.1, 0.4],
            "lr": [0.1, 0.1, 0.01],
            "seconds": [1.0, 1.0, 1.0],
        }
    )
    panels = {panel.title: panel.curves for panel in history_panels(history)}
    assert list(panels) == [
        "loss",
        "terms of the loss",
        "validation scores",
        "test scores",
        "learning rate",
    ]
    epochs, values = panels["validation scores"]["val_map"]
    assert (epochs.tolist(), values.tolist()) == ([3], [0.5])  # counted on from the first stage
    assert history_panels(history.iloc[:0]) == []

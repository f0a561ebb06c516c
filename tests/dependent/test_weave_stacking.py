"""Members chosen and joined: against slow loops and scikit-learn."""

import numpy as np
import pytest
from scipy.optimize import check_grad, minimize
from scipy.special import expit

from labelweave.calibration import LabelCalibrator
from labelweave.dependent import weave_stacking
from labelweave.dependent.weave_stacking import (
    best_layer,
    calibrated_mean,
    choose_members,
    fit_second_layer,
)
from labelweave.probabilities import log_odds


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    truth = (rng.random((300, 3)) < 0.4).astype(float)
    truth[:, 2] = truth[:, 0]  # the third label goes with the first
    noise = rng.normal(size=(3, 300, 3)) * np.array([1.0, 2.0, 8.0])[:, None, None]
    odds = 2 * (truth - 0.5) + noise
    odds[:, :, 2] = rng.normal(size=(3, 300))  # and cannot be told by itself
    truth[rng.random(truth.shape) < 0.1] = np.nan
    return odds, truth


def slow_entropy(odds, truth):
    total, n = 0.0, 0
    for i in range(len(truth)):
        for j in range(truth.shape[1]):
            if not np.isnan(truth[i, j]):
                p = expit(odds[i, j])
                total -= np.log(p if truth[i, j] else 1 - p)
                n += 1
    return total / n


def test_cross_entropy(rows):
    odds, truth = rows
    assert weave_stacking.mean_entropy(odds[0], truth) == pytest.approx(
        slow_entropy(odds[0], truth)
    )


def test_selection_takes_the_best_in_each_round(rows, monkeypatch):
    odds, truth = rows
    monkeypatch.setattr(weave_stacking, "N_ROUNDS", 4)
    factors = []
    for member in odds:
        steps = np.linspace(0, 4, 401)
        factors.append(steps[np.argmin([slow_entropy(f * member, truth) for f in steps[:201]])])
    odds = odds * np.array(factors)[:, None, None]
    taken = []
    for _ in range(4):
        trials = [slow_entropy(np.mean(odds[[*taken, k]], axis=0), truth) for k in range(3)]
        taken.append(int(np.argmin(trials)))
    expected = np.array(factors) * np.bincount(taken, minlength=3) / 4
    np.testing.assert_allclose(choose_members(rows[0], truth), expected, atol=0.01)


def test_a_useless_member_is_left_out(rows):
    odds, truth = rows
    weights = choose_members(odds, truth)
    assert weights[0] > weights[1] >= weights[2]


def test_the_second_layer_minimises_what_it_says(rows):
    """Label by label, with a plain optimiser and loops over rows."""
    odds, truth = rows
    common, penalty = np.array([0.6, 0.3, 0.1]), 3.0
    layer = fit_second_layer(odds, truth, common, penalty=penalty, n_directions=2)
    joined = sum(w * member for w, member in zip(common, odds, strict=True))
    directions = (joined - joined.mean(axis=0)) @ layer.basis
    np.testing.assert_allclose(directions.T @ directions / len(truth), np.eye(2), atol=1e-8)

    def cost(flat, label):
        change, bias, cross = flat[:3], flat[3], flat[4:]
        total = 0.5 * penalty * (change @ change + cross @ cross) + 0.05 * bias**2
        for i in range(len(truth)):
            if not np.isnan(truth[i, label]):
                s = (common + change) @ odds[:, i, label] + bias + cross @ directions[i]
                total += np.log1p(np.exp(-s)) if truth[i, label] else np.log1p(np.exp(s))
        return total

    for label in range(3):
        best = minimize(cost, np.zeros(6), args=(label,)).fun
        change = layer.weights[:, label] - common
        minimum = cost(np.r_[change, layer.bias[label], layer.cross[label]], label)
        assert minimum == pytest.approx(best, rel=1e-4)


def test_its_gradient(rows, monkeypatch):
    odds, truth = rows
    seen = {}
    real = weave_stacking.minimize

    def spy(objective, start, **options):
        seen["objective"], seen["n"] = objective, len(start)
        return real(objective, start, **options)

    monkeypatch.setattr(weave_stacking, "minimize", spy)
    fit_second_layer(odds, truth, np.full(3, 1 / 3), penalty=2.0, n_directions=2)
    at = np.random.default_rng(1).normal(size=seen["n"]) * 0.1
    value, gradient = (lambda x: seen["objective"](x)[0]), (lambda x: seen["objective"](x)[1])
    assert check_grad(value, gradient, at) < 1e-3 * np.linalg.norm(gradient(at))


def test_a_label_that_goes_with_another_is_told_by_it(rows):
    odds, truth = rows
    weights = choose_members(odds, truth)
    stack = best_layer(odds, truth, weights, seed=0)
    assert isinstance(stack.form, float)
    known = ~np.isnan(truth[:, 2])
    right = (stack.held_out[known, 2] > 0.5) == truth[known, 2]
    assert right.mean() > 0.75


def test_noise_leaves_the_weighted_mean_alone():
    rng = np.random.default_rng(0)
    truth = (rng.random((40, 4)) < 0.5).astype(float)
    odds = rng.normal(size=(1, 40, 4)) + 3 * (truth - 0.5)
    stack = best_layer(odds, truth, np.ones(1), seed=0)
    if stack.form == "mean":
        np.testing.assert_allclose(stack.layer(odds), expit(odds[0]))
    else:
        assert stack.form in ("calibrated", 1000.0)


def test_calibrated_members_are_joined(rows):
    odds, truth = rows
    layer = calibrated_mean(odds, truth)
    said = []
    for member in odds:
        p = LabelCalibrator().fit(truth, expit(member)).transform(expit(member))
        said.append(log_odds(p, weave_stacking.LOGIT_EPS, np.float32))
    weights = choose_members(np.stack(said), truth)
    expected = expit(np.tensordot(weights, np.stack(said), 1))
    np.testing.assert_allclose(layer(odds), expected, atol=1e-4)


def test_a_label_of_which_members_are_too_sure_is_calibrated():
    """One label is told twice as surely as is right, another half as surely."""
    rng = np.random.default_rng(0)
    odds = rng.normal(size=(1, 2000, 2))
    truth = (rng.random((2000, 2)) < expit(odds[0])).astype(float)
    wrong = odds * np.array([3.0, 0.4]) + np.array([1.0, -1.0])
    stack = best_layer(wrong, truth, choose_members(wrong, truth), seed=0)
    assert stack.form == "calibrated" or stack.form >= 1
    np.testing.assert_allclose(calibrated_mean(wrong, truth)(wrong), expit(odds[0]), atol=0.08)


def test_without_time_no_layer_is_learnt(rows):
    odds, truth = rows
    stack = best_layer(odds, truth, choose_members(odds, truth), seed=0, seconds=0.0)
    assert stack.form == "mean"


def test_many_entries_are_weighed_by_some_of_them(rows, monkeypatch):
    odds, truth = rows
    of_all = choose_members(odds, truth)
    monkeypatch.setattr(weave_stacking, "MAX_WEIGHT_ENTRIES", 600)  # 200 of 300 rows
    np.testing.assert_allclose(choose_members(odds, truth), of_all, atol=0.15)
    assert len(truth[weave_stacking.sample_rows(truth, 600, 0)]) == 200


def test_small_penalties_need_positives(rows):
    """With few positives, a label that goes with another is not enough for a free layer."""
    odds, truth = rows
    few = slice(0, 60)
    stack = best_layer(odds[:, few], truth[few], choose_members(odds, truth), seed=0)
    assert stack.form in ("mean", "calibrated", 1000.0, 100.0)


def test_weights_of_rows_choose_members_as_repeated_rows_do(rows):
    odds, truth = rows
    weight = np.arange(300) % 3 + 1.0
    repeated = np.repeat(np.arange(300), weight.astype(int))
    chosen = choose_members(odds, truth, weight)
    np.testing.assert_allclose(chosen, choose_members(odds[:, repeated], truth[repeated]))
    assert not np.allclose(chosen, choose_members(odds, truth))


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_weights_of_rows_in_the_second_layer(rows, scale):
    """Of each two rows with the same log-odds, one has all the weight and counts twice."""
    odds, truth = rows
    twice = np.concatenate([odds, odds], axis=1)
    wrong = np.vstack([truth, 1 - truth])
    weight = scale * np.repeat([2.0, 0.0], 300)
    how = {"penalty": 10.0, "n_directions": 2}
    layer = fit_second_layer(twice, wrong, np.full(3, 0.3), weight, **how)
    expected = fit_second_layer(twice, np.vstack([truth, truth]), np.full(3, 0.3), **how)
    np.testing.assert_allclose(layer(odds), expected(odds), atol=1e-5)


def test_weights_of_rows_in_the_choice_of_the_layer(rows):
    """The rows of weight 0 contradict the others: with them the third label has no evidence."""
    odds, truth = rows
    twice, wrong = np.concatenate([odds, odds], axis=1), np.vstack([truth, 1 - truth])
    common = choose_members(odds, truth)
    stack = best_layer(twice, wrong, common, 0, np.repeat([1.0, 0.0], 300))
    plain = best_layer(twice, wrong, common, 0)
    known = ~np.isnan(truth[:, 2])
    right = {
        name: ((one.layer(odds)[:, 2] > 0.5) == truth[:, 2])[known].mean()
        for name, one in (("weighted", stack), ("plain", plain))
    }
    assert isinstance(stack.form, float)
    assert right["weighted"] > right["plain"] + 0.1

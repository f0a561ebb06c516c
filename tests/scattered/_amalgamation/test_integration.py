"""Rules of integration, and estimates of reliability."""

import numpy as np
import pytest
from scipy.special import expit

from labelweave.exceptions import InputError
from labelweave.scattered._amalgamation.integration import integrate, reliability

LOGITS = np.array(
    [
        [[2.0, -1.0, np.nan, 0.5]],
        [[-3.0, -2.0, np.nan, np.nan]],
        [[1.0, -4.0, np.nan, np.nan]],
    ]
)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("positive", expit([2.0, -4.0, np.nan, 0.5])),
        ("mean-logit", expit([0.0, -7 / 3, np.nan, 0.5])),
        ("vote", [1.0, 0.0, np.nan, 1.0]),
    ],
)
def test_rules(rule, expected):
    assert np.allclose(integrate(LOGITS, rule), [expected], equal_nan=True)


def test_an_even_vote_is_positive():
    assert integrate(np.array([[[1.0]], [[-1.0]]]), "vote").tolist() == [[1.0]]


def test_weights():
    weights = np.array([1.0, 2.0, 1.0])
    weighted = integrate(LOGITS, "reliability", weights)
    assert np.allclose(weighted, [expit([-3 / 4, -9 / 4, np.nan, 0.5])], equal_nan=True)
    by_label = np.tile(weights[:, None], (1, 4))
    assert np.array_equal(integrate(LOGITS, "reliability", by_label), weighted, equal_nan=True)
    with pytest.raises(InputError, match="needs weights"):
        integrate(LOGITS, "reliability")
    with pytest.raises(InputError, match="no rule 'median'"):
        integrate(LOGITS, "median")


def random_votes(errors, n=3000, n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random((n, n_labels)) < np.linspace(0.1, 0.6, n_labels)
    wrong = rng.random((len(errors), n, n_labels)) < np.array(errors)[:, None, None]
    return truth, np.where(truth ^ wrong, 1.0, -1.0)


@pytest.mark.parametrize("errors", [(0.05, 0.2), (0.1, 0.1, 0.35), (0.3, 0.02, 0.15, 0.2)])
def test_reliability_estimates_the_error_rates(errors):
    _, logits = random_votes(errors)
    estimate = reliability(logits)
    assert np.allclose(estimate.sensitivity, 1 - np.array(errors), atol=0.06)
    assert np.allclose(estimate.specificity, 1 - np.array(errors), atol=0.06)
    assert estimate.weight.argmax() == int(np.argmin(errors))


def test_known_labels_are_used():
    truth, logits = random_votes((0.4, 0.4), n=200)
    known = np.full(truth.shape, np.nan)
    known[:150] = truth[:150]
    estimate = reliability(logits, known)
    assert np.allclose(estimate.sensitivity, 0.6, atol=0.1)


def test_labels_of_one_teacher_are_not_used():
    _, logits = random_votes((0.1, 0.3))
    alone = logits.copy()
    alone[1, :, 0] = np.nan
    assert np.allclose(reliability(alone).weight, reliability(logits[:, :, 1:]).weight)
    logits[1] = np.nan
    assert np.allclose(reliability(logits).sensitivity, 0.75)  # the prior

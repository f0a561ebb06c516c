"""Rules of integration, and reliabilities."""

import numpy as np
import pytest
from scipy.special import expit

from labelweave.exceptions import InputError
from labelweave.scattered.integration import integrate
from labelweave.scattered.reliability import reliability

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
    found = integrate(LOGITS, "reliability", weights)
    assert np.allclose(found, [expit([-3 / 4, -9 / 4, np.nan, 0.5])], equal_nan=True)
    by_label = np.tile(weights[:, None], (1, 4))
    assert np.array_equal(integrate(LOGITS, "reliability", by_label), found, equal_nan=True)
    with pytest.raises(InputError, match="needs weights"):
        integrate(LOGITS, "reliability")
    with pytest.raises(InputError, match="no rule 'loudest'"):
        integrate(LOGITS, "loudest")


def made_up_votes(errors, n=3000, n_labels=5, seed=0):
    rng = np.random.default_rng(seed)
    truth = rng.random((n, n_labels)) < np.linspace(0.1, 0.6, n_labels)
    wrong = rng.random((len(errors), n, n_labels)) < np.array(errors)[:, None, None]
    return truth, np.where(truth ^ wrong, 1.0, -1.0)


@pytest.mark.parametrize("errors", [(0.05, 0.2), (0.1, 0.1, 0.35), (0.3, 0.02, 0.15, 0.2)])
def test_reliability_finds_the_error_rates(errors):
    _, logits = made_up_votes(errors)
    found = reliability(logits)
    assert np.allclose(found.sensitivity, 1 - np.array(errors), atol=0.06)
    assert np.allclose(found.specificity, 1 - np.array(errors), atol=0.06)
    assert found.weight.argmax() == int(np.argmin(errors))


def test_known_labels_are_used():
    truth, logits = made_up_votes((0.4, 0.4), n=200)
    known = np.full(truth.shape, np.nan)
    known[:150] = truth[:150]
    found = reliability(logits, known)
    assert np.allclose(found.sensitivity, 0.6, atol=0.1)


def test_labels_that_one_teacher_knows_say_nothing():
    _, logits = made_up_votes((0.1, 0.3))
    alone = logits.copy()
    alone[1, :, 0] = np.nan
    assert np.allclose(reliability(alone).weight, reliability(logits[:, :, 1:]).weight)
    logits[1] = np.nan
    assert np.allclose(reliability(logits).sensitivity, 0.75)  # what was believed before

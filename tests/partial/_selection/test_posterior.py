"""Posteriors of unannotated entries: against counting, and against slow optimisation."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit

from labelweave.partial._selection.posterior import (
    annotation_posterior,
    annotation_posterior_given_labels,
    annotation_rate,
    logit_shift,
    positive_posterior,
)


@pytest.fixture(scope="module")
def entries():
    rng = np.random.default_rng(0)
    p = expit(rng.normal(-1, 2.5, size=(4000, 5)))
    truth = rng.random(p.shape) < p
    codes = (truth & (rng.random(p.shape) < 0.25)).astype(float)
    return p, truth, codes


def test_positive_posterior_equals_the_counted_share(entries):
    p, truth, codes = entries
    unannotated = codes == 0
    posterior = positive_posterior(0.25 * p, 0.25)
    np.testing.assert_allclose(posterior, 0.75 * p / (1 - 0.25 * p))
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        near = unannotated & (posterior >= low) & (posterior < low + 0.2)
        assert truth[near].mean() == pytest.approx(posterior[near].mean(), abs=0.04)


def test_the_shift_lowers_the_expected_count_to_the_estimate(entries):
    p, truth, codes = entries
    codes = codes.copy()
    codes[0, 0], codes[1, 1] = np.nan, -1.0  # ignored
    part = (codes == 0) | (codes == 1)
    wanted = (codes == 1).sum() / annotation_rate(p, codes)
    slow = brentq(lambda by: expit(logit(p[part]) + by).sum() - wanted, -20, 20)
    for raised in (1.0, 2.0):  # as weights have done to the probabilities
        shift = logit_shift(expit(logit(p) + raised), codes)
        assert raised + shift == pytest.approx(slow, abs=1e-6)
    assert logit_shift(expit(logit(p) - 2), codes) == 0  # the estimate is a bound from above
    assert wanted == pytest.approx(truth[part].sum(), rel=0.1)
    assert logit_shift(p, np.zeros_like(p)) == 0


def test_with_all_positives_annotated_the_rest_is_negative():
    np.testing.assert_array_equal(positive_posterior(np.array([0.0, 0.4, 1.0]), 1.0), 0.0)


def test_the_curve_maximises_the_likelihood(entries):
    p, _, codes = entries
    codes = codes.copy()
    codes[0, 0], codes[1, 1] = np.nan, -1.0  # ignored
    scores = expit(0.5 * logit(p) + 1)  # as of a network with weights on its entries
    posterior = annotation_posterior(scores, codes)
    part = (codes == 0) | (codes == 1)
    x, y = logit(scores[part]), codes[part]
    target = np.where(y == 1, (y.sum() + 1) / (y.sum() + 2), 1 / ((y == 0).sum() + 2))

    def loss(ab):
        z = ab[0] * x + ab[1]
        return np.mean(np.logaddexp(0, z) - target * z)

    slow = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-12})
    np.testing.assert_allclose(posterior[part], expit(slow.x[0] * x + slow.x[1]), atol=1e-4)
    assert posterior[part].mean() == pytest.approx(y.mean(), rel=0.01)


@pytest.mark.parametrize("codes", [np.zeros((20, 2)), np.ones((20, 2))], ids=["none", "all"])
def test_labels_all_alike(codes):
    scores = np.random.default_rng(0).random((20, 2))
    posterior = annotation_posterior(scores, codes)
    assert np.abs(posterior - codes).max() < 0.1
    rate = annotation_rate(scores, codes)
    assert rate == 1
    assert np.isfinite(positive_posterior(posterior, rate)).all()


def test_scores_that_divide_everything():
    codes = np.array([[1.0, 0.0]] * 50)
    posterior = annotation_posterior(np.array([[1.0, 0.0]] * 50), codes)
    assert np.isfinite(posterior).all()
    assert np.abs(posterior - codes).max() < 0.05


def test_the_rate(entries):
    p, _, codes = entries
    assert 0.2 < annotation_rate(p, codes) < 0.35


def test_other_labels_of_the_row_add_information():
    """Two labels that always go together; the scores know nothing of the second."""
    rng = np.random.default_rng(0)
    first, third = rng.random(3000) < 0.3, rng.random(3000) < 0.3
    truth = np.column_stack([first, first, third])
    codes = (truth & (rng.random(truth.shape) < 0.6)).astype(float)
    scores = np.full(truth.shape, 0.3)
    plain = annotation_posterior(scores, codes)
    informed = annotation_posterior_given_labels(plain, codes)
    open_second = (codes[:, 1] == 0) & (codes[:, 0] == 1)
    unlike = (codes[:, 1] == 0) & (codes[:, 0] == 0)
    assert informed[open_second, 1].mean() > 0.45  # of these all are positive, 60 % are annotated
    assert informed[unlike, 1].mean() < 0.2
    assert abs(informed[codes[:, 2] == 0, 2].mean() - 0.18) < 0.05
    np.testing.assert_array_equal(informed, annotation_posterior_given_labels(plain, codes))


def test_an_entry_is_not_predicted_by_its_own_annotation():
    rng = np.random.default_rng(0)
    codes = (rng.random((400, 4)) < 0.5).astype(float)
    posterior = rng.random(codes.shape)
    informed = annotation_posterior_given_labels(posterior, codes)
    assert abs(np.corrcoef(informed[:, 0], codes[:, 0])[0, 1]) < 0.15


def test_one_annotated_label_per_row_is_no_evidence_against_the_others():
    codes = np.eye(5)[np.arange(100) % 5]
    posterior = np.random.default_rng(0).random(codes.shape)
    same = annotation_posterior_given_labels(posterior, codes)
    np.testing.assert_array_equal(same, posterior)

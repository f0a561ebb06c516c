"""Logits shifted to the label prevalence, and to a number of positives."""

import numpy as np
import pytest
from scipy.special import expit

from labelweave.scattered._amalgamation.prevalence import prevalence_shift, shift_to_count


def test_the_shift_leads_to_the_prevalence():
    logits = np.random.default_rng(0).normal(size=(50, 4))
    logits[:20, 1], logits[:, 3] = np.nan, np.nan  # predicted in part, and never
    shift = prevalence_shift(logits, np.array([0.1, 0.7, np.nan, 0.5]))
    means = np.nanmean(expit(logits[:, :2] + shift[:2]), axis=0)
    assert np.allclose(means, [0.1, 0.7], atol=1e-6)
    assert shift[2] == shift[3] == 0
    never = prevalence_shift(logits[:, :1], np.zeros(1))  # no positives in the teachers' rows
    assert np.isclose(expit(logits[:, 0] + never).mean(), 1e-3)


@pytest.mark.parametrize("n_positive", range(7))
def test_the_common_shift_leaves_the_requested_number_positive(n_positive):
    logits = np.random.default_rng(1).normal(size=(3, 2))
    assert (logits - shift_to_count(logits, n_positive) > 0).sum() == n_positive

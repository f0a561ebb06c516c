"""Log odds of probabilities."""

import numpy as np

from labelweave.probabilities import log_odds


def test_probabilities_of_0_and_1_have_finite_log_odds():
    odds = log_odds(np.array([0.0, 0.2, 1.0]), 1e-4)
    np.testing.assert_allclose(odds, [np.log(1e-4 / (1 - 1e-4)), np.log(0.25), -odds[0]])


def test_precision_is_that_of_the_probabilities_unless_asked_for():
    p = np.array([0.3], dtype=np.float32)
    assert log_odds(p, 1e-6).dtype == np.float32
    assert log_odds(p.astype(np.float64), 1e-6, np.float32).dtype == np.float32

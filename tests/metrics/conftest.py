"""Small random label problems, with everything that makes metrics go wrong."""

import numpy as np
import pytest


@pytest.fixture
def problem():
    """Y_true, Y_pred, Y_score with ties, an empty row, a full row and an absent label."""
    rng = np.random.default_rng(0)
    Y_true = (rng.random((60, 9)) < 0.3).astype(float)
    Y_true[3], Y_true[4], Y_true[:, 5] = 0, 1, 0
    Y_score = np.round(0.5 * Y_true + 0.6 * rng.random(Y_true.shape), 1).clip(0, 1)
    Y_pred = (Y_score >= 0.6).astype(int)
    Y_pred[3] = 0
    return Y_true, Y_pred, Y_score


@pytest.fixture
def partial(problem):
    """The same with a quarter of the entries unknown, among them a whole row and label."""
    Y_true, Y_pred, Y_score = problem
    Y_true = Y_true.copy()
    Y_true[np.random.default_rng(1).random(Y_true.shape) < 0.25] = np.nan
    Y_true[7], Y_true[:, 8] = np.nan, np.nan
    return Y_true, Y_pred, Y_score

"""Easy rows half of whose positives are hidden, and mini-batches for selection rules."""

import numpy as np
import pytest

from labelweave.data.scenarios import hide_positives
from labelweave.partial._selection.selection_rules import MiniBatch


@pytest.fixture(scope="module")
def data():
    """Features, the truth, and the truth without half of its positives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 8))
    Y = (X[:, :4] + 0.3 * rng.normal(size=(240, 4)) > 0.3).astype(float)
    return X, Y, hide_positives(Y, 0.5, random_state=0).Y.to_numpy()


@pytest.fixture
def mini_batch():
    """A function that makes a mini-batch of 8 rows and 5 labels from logits; one entry is NaN."""
    targets = (np.random.default_rng(1).random((8, 5)) < 0.3).astype(float)
    targets[0, 0] = np.nan

    def make(*logits, drop_high=0.0):
        candidates = [targets == 0] * len(logits)
        return MiniBatch(logits, targets, candidates, np.arange(8), drop_high, 0.0)

    return make


@pytest.fixture
def slow_row_losses():
    """A function of logits and targets: the cross-entropy of each row, by loops."""

    def losses(logits, targets):
        totals = []
        for z_row, y_row in zip(logits, targets, strict=True):
            p_row = 1 / (1 + np.exp(-z_row))
            known = [(p, y) for p, y in zip(p_row, y_row, strict=True) if not np.isnan(y)]
            totals.append(-sum(np.log(p) if y == 1 else np.log(1 - p) for p, y in known))
        return totals

    return losses


@pytest.fixture
def used_rows():
    """A function that returns the rows of a selection that are not ignored."""
    return lambda selection: set(np.flatnonzero(~np.isnan(selection.targets).all(axis=1)))

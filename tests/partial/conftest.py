"""Easy rows half of whose positives are hidden."""

import numpy as np
import pytest

from labelweave.data.scenarios import hide_positives


@pytest.fixture(scope="module")
def data():
    """Features, the truth, and the truth without half of its positives."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 8))
    Y = (X[:, :4] + 0.3 * rng.normal(size=(240, 4)) > 0.3).astype(float)
    return X, Y, hide_positives(Y, 0.5, random_state=0).Y.to_numpy()

"""Two trained chains that share two labels, made once."""

import numpy as np
import pytest
from scattered_data import easy_data, small_chain

from labelweave.labels import as_labels
from labelweave.scattered.teacher import Teacher


@pytest.fixture(scope="session")
def easy():
    """Rows, labels, and two teachers that each know three or four of the five labels."""
    X, Y = easy_data()
    first = small_chain(X[:200], as_labels(Y[:200, :3], names=["a", "b", "c"]))
    second = small_chain(X[200:400], as_labels(Y[200:400, 1:], names=["b", "c", "d", "e"]), seed=1)
    return (
        X[400:],
        Y[400:].astype(np.float32),
        [
            Teacher(first, name="first"),
            Teacher(second, name="second"),
        ],
    )

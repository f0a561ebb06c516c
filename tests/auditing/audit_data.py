"""Labels that go together, with some positives hidden."""

import numpy as np

import labelweave as lw
from labelweave.data.scenarios import hide_positives


def make_hidden(n_rows=400, seed=0, share=0.4):
    """Three pairs of labels; the second of a pair nearly always comes with the first."""
    rng = np.random.default_rng(seed)
    first = rng.random((n_rows, 3)) < 0.35
    second = first ^ (rng.random((n_rows, 3)) < 0.08)
    Y = np.column_stack([first, second]).astype(np.float32)
    X = np.column_stack([first, second]) + rng.normal(0, 0.8, (n_rows, 6))
    names = ["a1", "b1", "c1", "a2", "b2", "c2"]
    hidden = hide_positives(lw.as_labels(Y, names=names), share, random_state=seed)
    return lw.Dataset(X, hidden.Y, name="pairs"), hidden

"""TC: weights of teachers that are learnt from a few labels."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scattered_data import small_student
from scipy.special import expit

from labelweave.scattered.tc import TC, teacher_weights
from labelweave.scattered.teacher import Teacher


def alternating_teachers(n=400, seed=0):
    """Two teachers: one is right where the first feature is positive, the other elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    truth = (rng.random((n, 3)) < 0.5).astype(np.float32)
    confident = np.where(truth == 1, 3.0, -3.0)
    right = X[:, 0] > 0
    logits = np.stack(
        [
            np.where(right[:, None], confident, -confident),
            np.where(right[:, None], -confident, confident),
        ]
    )
    return X, truth, logits.astype(np.float32), right


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame])
def test_weights_are_learnt_from_the_features(form):
    X, truth, logits, right = alternating_teachers()
    known = truth.copy()
    known[100:] = np.nan
    weights = teacher_weights(form(X), logits, known, hidden=16, steps=200, seed=0)
    assert np.allclose(weights.sum(axis=0), 1, atol=1e-5)
    assert ((weights[0] > 0.5) == right).mean() > 0.9


def test_weights_of_texts_do_not_depend_on_the_row():
    _, truth, logits, _ = alternating_teachers()
    weights = teacher_weights(["some text"] * 400, logits, truth, hidden=0, steps=50, seed=0)
    assert np.allclose(weights, weights[:, :1])


def test_weights_are_reported():
    X, truth, logits, _ = alternating_teachers()
    rows = {row.tobytes(): i for i, row in enumerate(X)}

    def teacher(t):
        return lambda X: expit(logits[t, [rows[row.tobytes()] for row in X]])

    teachers = [Teacher(teacher(t), list("abc"), name=f"t{t}") for t in range(2)]
    known = truth.copy()
    known[200:] = np.nan
    model = TC(teachers, student=small_student(), random_state=0)
    model.fit(X, known)
    assert sum(model.notes_["teacher_weights"].values()) == pytest.approx(1, abs=1e-4)

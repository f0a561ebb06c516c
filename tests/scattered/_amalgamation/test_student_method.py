"""Methods that train a student on integrated predictions."""

import numpy as np
import pytest
from scattered_data import small_student

from labelweave.metrics import hamming_loss
from labelweave.scattered.bl import BL
from labelweave.scattered.tc import TC


@pytest.mark.parametrize("cls", [BL, TC])
def test_they_learn(cls, easy):
    X, Y, teachers = easy
    model = cls(teachers, student=small_student(), random_state=0).fit(X)
    assert hamming_loss(Y, model.predict(X)) < 0.8 * hamming_loss(Y, np.zeros_like(Y))
    again = cls(teachers[::-1], student=small_student(), random_state=0).fit(X)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))

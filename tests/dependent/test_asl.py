"""The asymmetric loss as an estimator; its equations are tested with the other losses."""

import numpy as np
import pytest

from labelweave.dependent.asl import ASL
from labelweave.dependent.mlp import MLP

QUICK = {"hidden": (32,), "epochs": 15, "lr": 1e-2, "random_state": 0}


@pytest.mark.parametrize("parameters", [{}, {"gamma_neg": 2.0, "gamma_pos": 0.0, "clip": 0.1}])
def test_it_is_the_perceptron_with_this_loss(data, parameters):
    X, Y = data
    model = ASL(**QUICK, **parameters).fit(X, Y)
    same = MLP(**QUICK, loss="asl", loss_params=parameters).fit(X, Y)
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))
    assert list(model.history_.columns) == list(same.history_.columns)


def test_more_focus_on_negatives_raises_the_outputs(data):
    X, Y = data
    mild = ASL(**QUICK, gamma_neg=0, gamma_pos=0, clip=0).fit(X, Y).predict_proba(X)
    strong = ASL(**QUICK, gamma_neg=4, gamma_pos=0, clip=0).fit(X, Y).predict_proba(X)
    assert strong.mean() > mild.mean() + 0.05


def test_clipping_stays_below_one():
    with pytest.raises(ValueError, match="clip"):
        ASL(clip=1.5).fit([[0.0], [1.0]], [[0, 1], [1, 0]])

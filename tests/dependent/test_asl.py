"""The asymmetric loss as an estimator; its equations are tested with the other losses."""

import numpy as np
import pytest
from sklearn.base import clone

from labelweave.dependent.asl import ASL
from labelweave.dependent.mlp import MLP
from labelweave.metrics import f1_example

QUICK = {"hidden": (32,), "epochs": 15, "lr": 1e-2, "random_state": 0}


@pytest.mark.parametrize("given", [{}, {"gamma_neg": 2.0, "gamma_pos": 0.0, "clip": 0.1}])
def test_it_is_the_perceptron_with_this_loss(data, given):
    X, Y = data
    found = ASL(**QUICK, **given).fit(X, Y)
    same = MLP(**QUICK, loss="asl", loss_params=given).fit(X, Y)
    np.testing.assert_array_equal(found.predict_proba(X), same.predict_proba(X))
    assert list(found.history_.columns) == list(same.history_.columns)


def test_without_focus_and_shift_it_is_cross_entropy(data):
    X, Y = data
    found = ASL(**QUICK, gamma_neg=0, gamma_pos=0, clip=0).fit(X, Y)
    plain = MLP(**QUICK).fit(X, Y)
    np.testing.assert_allclose(found.predict_proba(X), plain.predict_proba(X), atol=1e-3)


def test_more_focus_on_negatives_raises_the_outputs(data):
    X, Y = data
    mild = ASL(**QUICK, gamma_neg=0, gamma_pos=0, clip=0).fit(X, Y).predict_proba(X)
    strong = ASL(**QUICK, gamma_neg=4, gamma_pos=0, clip=0).fit(X, Y).predict_proba(X)
    assert strong.mean() > mild.mean() + 0.05


def test_parameters_are_its_own():
    assert "loss" not in ASL().get_params()
    assert "loss_params" not in ASL().get_params()
    assert clone(ASL(clip=0.2, dropout=0.1)).get_params()["clip"] == 0.2
    with pytest.raises(ValueError, match="clip"):
        ASL(clip=1.5).fit([[0.0], [1.0]], [[0, 1], [1, 0]])


@pytest.mark.data
def test_scene_with_a_tuned_threshold(data_home):
    import labelweave as lw

    train, test = lw.load_dataset("scene").split()
    model = ASL(threshold="tuned", random_state=0).fit(train.X, train.Y)
    assert f1_example(test.Y, model.predict(test.X)) > 0.73

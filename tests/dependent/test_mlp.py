"""The multi-layer perceptron."""

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score

from labelweave.dependent.mlp import MLP
from labelweave.exceptions import InputError
from labelweave.nn.losses import LOSSES
from labelweave.nn.training import DivergedError


def quick(**changes):
    settings = {"hidden": (32,), "epochs": 15, "lr": 1e-2, "random_state": 0}
    return MLP(**(settings | changes))


@pytest.mark.parametrize("loss", LOSSES)
def test_every_loss_learns(data, loss):
    X, Y = data
    model = quick(loss=loss).fit(X[:200], Y[:200])
    by_chance = Y[200:].mean()  # 0.36
    score = average_precision_score(Y[200:], model.predict_proba(X[200:]), average="macro")
    assert score > by_chance + 0.3
    assert loss in model.history_


def test_an_own_loss_and_parameters(data):
    def squared(logits, targets):
        return (torch.sigmoid(logits) - torch.nan_to_num(targets)) ** 2 * ~torch.isnan(targets)

    assert "squared" in quick(loss=squared).fit(*data).history_
    mild = quick(loss="asl", loss_params={"gamma_neg": 0, "gamma_pos": 0, "clip": 0}).fit(*data)
    plain = quick(loss="bce").fit(*data)
    np.testing.assert_allclose(mild.predict_proba(data[0]), plain.predict_proba(data[0]), atol=1e-3)
    with pytest.raises(InputError, match="wrong parameters for the loss 'bce'"):
        quick(loss_params={"gamma": 1}).fit(*data)


def test_no_hidden_layer_is_logistic_regression(data):
    model = quick(hidden=()).fit(*data)
    assert [tuple(p.shape) for p in model.network_.parameters()] == [(5, 20), (5,)]


def test_a_rate_far_too_high_says_so(data):
    with pytest.raises(DivergedError, match="lower lr"):
        quick(lr=1e30, scale="none").fit(*data)


def test_saved_models_leave_the_run_behind(data, tmp_path):
    import labelweave as lw
    from labelweave.nn.callbacks import Callback

    model = quick(callbacks=[Callback()], checkpoint=tmp_path / "run", loss="asl").fit(*data)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(data[0]), model.predict_proba(data[0]))
    assert loaded.callbacks is None
    assert loaded.checkpoint is None
    assert loaded.loss == "asl"
    assert loaded.history_.equals(model.history_)


def test_the_decay_of_adam_is_part_of_the_gradients(data):
    """One full-batch step from the same weights, in plain torch."""
    X, Y = (np.asarray(array[:30], dtype=np.float32) for array in data)
    X = X / 10
    settings = {"hidden": (), "epochs": 1, "batch_size": 30, "patience": None, "scale": "none"}

    def trained(optimizer, lr):
        model = MLP(**settings, optimizer=optimizer, weight_decay=3.0, lr=lr, random_state=0)
        return model.fit(X, Y).network_

    kinds = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW, "sgd": torch.optim.SGD}
    for name, kind in kinds.items():
        network = trained(name, 1e-12)  # the initial weights
        optimizer = kind(network.parameters(), lr=0.1, weight_decay=3.0)
        optimizer.zero_grad()  # of the training step
        logits = network(torch.tensor(X))
        torch.nn.functional.binary_cross_entropy_with_logits(logits, torch.tensor(Y)).backward()
        optimizer.step()
        for weights, slow in zip(
            trained(name, 0.1).parameters(), network.parameters(), strict=True
        ):
            torch.testing.assert_close(weights, slow, atol=1e-5, rtol=1e-4)


def test_an_unknown_optimizer():
    with pytest.raises(ValueError, match="optimizer"):
        MLP(optimizer="adagrad").fit([[0.0], [1.0]], [[0, 1], [1, 0]])

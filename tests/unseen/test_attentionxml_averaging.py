"""The moving average of the weights."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from labelweave.dependent.mlp import MLP
from labelweave.nn.batches import Batch
from labelweave.nn.encoders import BatchNorm
from labelweave.nn.losses import bce
from labelweave.nn.task import StepInfo, SupervisedTask
from labelweave.unseen.attentionxml_averaging import AveragedTask


def test_it_is_the_average_that_the_formula_gives():
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 5), BatchNorm(5), nn.ReLU(), nn.Linear(5, 2))
    expected = {name: values.clone() for name, values in network.state_dict().items()}
    task = AveragedTask(SupervisedTask(network, bce, {"lr": 0.1}), decay=0.4).train()
    (plan,) = task.optimizers(9)
    for step in range(9):
        batch = Batch(torch.randn(6, 4), torch.randint(0, 2, (6, 2)).float(), torch.arange(6))
        info = StepInfo(0, step, step / 9)
        plan.optimizer.zero_grad()
        task(batch, info)["loss"].backward()
        plan.optimizer.step()
        task.after_step(batch, info)
        kept = min(0.4, (step + 1) / (step + 11))
        for name, now in task.trained.network.state_dict().items():
            is_counter = not now.is_floating_point()
            expected[name] = now if is_counter else kept * expected[name] + (1 - kept) * now
    assert task.network is network
    torch.testing.assert_close(dict(network.state_dict()), expected)
    assert not torch.equal(network[0].weight, task.trained.network[0].weight)


def test_the_trained_weights_learn_and_the_average_is_judged():
    torch.manual_seed(0)
    task = AveragedTask(SupervisedTask(nn.Linear(3, 2), bce, {"lr": 0.1}), decay=0.9)
    nn.init.zeros_(task.trained.network.weight)
    batch = Batch(torch.randn(5, 3), torch.ones(5, 2), torch.arange(5))
    info = StepInfo(0, 0, 0.0)
    for training, network in ((True, task.trained.network), (False, task.network)):
        loss = task.train(training).losses(batch, info)["loss"]
        torch.testing.assert_close(loss, bce(network(batch.x), batch.y).mean())
    assert [p.requires_grad for p in task.parameters()] == [True, True, False, False]


@pytest.mark.parametrize("norm", ["batch", None])
def test_a_run_that_stopped_goes_on_as_if_it_had_not(tmp_path, norm):
    from labelweave.nn.callbacks import Callback

    class Stop(Callback):
        def on_step(self, view, loss):
            if view.step == 7:
                raise KeyboardInterrupt

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 6)), rng.integers(0, 2, (60, 3))

    class Averaged(MLP):
        def _build_task(self, network, session):
            return AveragedTask(super()._build_task(network, session), 0.9)

    model = Averaged((8,), norm=norm, epochs=4, batch_size=16, random_state=0)
    uninterrupted = copy.deepcopy(model).fit(X, Y)
    resumed = model.set_params(checkpoint=tmp_path, checkpoint_every=0)
    with pytest.raises(KeyboardInterrupt):
        copy.deepcopy(resumed).set_params(callbacks=[Stop()]).fit(X, Y)
    np.testing.assert_array_equal(
        resumed.fit(X, Y).predict_proba(X), uninterrupted.predict_proba(X)
    )

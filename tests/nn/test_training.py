"""The loop, on small tasks of its own: terms, stopping, schedules, several networks, errors."""

import copy
import math

import numpy as np
import pytest
import torch
from torch import nn

from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.nn.batches import Batches
from labelweave.nn.callbacks import Callback
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.randomness import forked_rng
from labelweave.nn.task import OptimizerPlan, SupervisedTask, Task, make_plan
from labelweave.nn.training import DivergedError, LoopSettings, Validation, train


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)).astype(np.float32)
    Y = as_labels((X @ rng.normal(size=(6, 3)) > 0).astype(np.float32))
    return X, Y


def linear_task(lr=0.1, schedule="constant"):
    torch.manual_seed(0)
    return SupervisedTask(nn.Linear(6, 3), bce, {"lr": lr, "schedule": schedule}, name="bce")


def batches_of(data, batch_size=10):
    return Batches(*data, batch_size=batch_size)


class TwoPeers(Task):
    """Two networks with an optimiser each, a slow copy of the first, and a counter."""

    def __init__(self):
        super().__init__(nn.Linear(6, 3))
        self.peer = nn.Linear(6, 3)
        self.slow = copy.deepcopy(self.network).requires_grad_(False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.seen = []

    def losses(self, batch, info):
        self.seen.append(info)
        return {
            "own": mean_loss(bce(self.network(batch.x), batch.y)),
            "peer": 0.5 * mean_loss(bce(self.peer(batch.x), batch.y)),
        }

    def optimizers(self, n_steps):
        sgd = torch.optim.SGD(self.peer.parameters(), lr=0.3)
        return [make_plan(self.network.parameters(), n_steps=n_steps, lr=0.1), OptimizerPlan(sgd)]

    def after_step(self, batch, info):
        self.steps += 1
        with torch.no_grad():
            for slow, quick in zip(self.slow.parameters(), self.network.parameters(), strict=True):
                slow.lerp_(quick, 0.1)

    def epoch_metrics(self):
        return {"distance": float((self.slow.weight - self.network.weight).detach().norm())}


def test_it_learns_what_a_plain_loop_learns(data):
    task = linear_task()
    result = train(task, batches_of(data), LoopSettings(epochs=5))
    plain = linear_task()
    optimizer = torch.optim.AdamW(plain.network.parameters(), lr=0.1, weight_decay=0, fused=True)
    losses = []
    for epoch in range(5):
        for batch in batches_of(data).epoch(epoch):
            loss = nn.functional.binary_cross_entropy_with_logits(plain.network(batch.x), batch.y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    torch.testing.assert_close(task.network.weight, plain.network.weight)
    means = [row["loss"] for row in result.history]
    np.testing.assert_allclose(means, np.reshape(losses, (5, 4)).mean(axis=1), rtol=1e-6)


def test_a_tiny_set_is_learnt_by_heart():
    X = np.random.default_rng(1).normal(size=(8, 6)).astype(np.float32)
    Y = as_labels(np.random.default_rng(2).integers(0, 2, (8, 3)).astype(np.float32))
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 3))
    task = SupervisedTask(network, bce, {"lr": 0.01})
    result = train(task, Batches(X, Y, batch_size=8), LoopSettings(epochs=300))
    assert result.history[-1]["loss"] < 0.01
    assert ((task.scores(torch.from_numpy(X)) > 0.5).numpy() == Y.to_numpy()).all()


def test_several_networks_optimisers_and_a_momentum_copy(data):
    torch.manual_seed(0)
    task = TwoPeers()
    before = copy.deepcopy(task.state_dict())
    result = train(task, batches_of(data), LoopSettings(epochs=3))
    after = task.state_dict()
    assert task.steps == 12
    assert all((before[name] != after[name]).any() for name in before)
    for row in result.history:
        assert row["loss"] == pytest.approx(row["own"] + row["peer"])
        assert row["distance"] > 0
    assert [info.step for info in task.seen] == list(range(12))
    assert [info.epoch for info in task.seen] == [0] * 4 + [1] * 4 + [2] * 4
    assert task.seen[6].progress == 0.5


def test_the_best_weights_are_restored_after_patience_runs_out(data):
    task = linear_task()
    values = iter([0.1, 0.5, 0.3, 0.4, 0.45, 0.9])
    weights = []

    def score(scores):
        weights.append(task.network.weight.detach().clone())
        return {"score": next(values)}

    validation = Validation(batches_of(data), score)
    settings = LoopSettings(epochs=20, monitor="val_score", patience=3)
    result = train(task, batches_of(data), settings, validation=validation)
    assert [row["val_score"] for row in result.history] == [0.1, 0.5, 0.3, 0.4, 0.45]
    assert result.best_epoch == 2
    assert result.stopped_early
    torch.testing.assert_close(task.network.weight, weights[1], rtol=0, atol=0)


def test_lower_may_be_better_and_nan_is_passed_over(data):
    values = iter([math.nan, 0.5, 0.3, math.nan, 0.4])
    validation = Validation(batches_of(data), lambda scores: {"x": next(values)})
    settings = LoopSettings(epochs=5, monitor="val_x", greater_is_better=False)
    result = train(linear_task(), batches_of(data), settings, validation=validation)
    assert result.best_epoch == 3
    assert not result.stopped_early


def test_validation_loss_is_that_of_the_validation_rows(data):
    X, Y = data
    task = linear_task()
    validation = Validation(Batches(X[:7], Y[:7], batch_size=3), lambda scores: {})
    settings = LoopSettings(epochs=1, monitor="val_loss", greater_is_better=False)
    result = train(task, batches_of(data), settings, validation=validation)
    logits = task.network(torch.from_numpy(X[:7]))
    expected = mean_loss(bce(logits, torch.from_numpy(Y[:7].to_numpy()))).item()
    assert result.history[0]["val_loss"] == pytest.approx(expected)


@pytest.mark.parametrize("schedule", ["cosine", "linear"])
def test_rates_rise_and_fall(data, schedule):
    result = train(linear_task(schedule=schedule), batches_of(data), LoopSettings(epochs=10))
    rates = [row["lr"] for row in result.history]
    assert rates == sorted(rates, reverse=True)
    assert rates[0] > 0.08
    assert rates[-1] == pytest.approx(0, abs=1e-6)


def test_the_rate_falls_on_a_plateau_of_a_score(data):
    values = iter([0.5, 0.6, *[0.6] * 10])
    validation = Validation(batches_of(data), lambda scores: {"x": next(values)})
    settings = LoopSettings(epochs=9, monitor="val_x")
    task = linear_task(schedule="plateau")
    result = train(task, batches_of(data), settings, validation=validation)
    rates = [row["lr"] for row in result.history]
    assert rates[:6] == [0.1] * 6
    assert rates[6:] == pytest.approx([0.01] * 3)


def test_the_rate_starts_again_in_growing_cycles(data):
    plan = {"lr": 0.1, "schedule": "cosine-restarts", "cycle": 2, "cycle_growth": 3, "min_lr": 0.02}
    task = SupervisedTask(nn.Linear(6, 3), bce, plan)
    result = train(task, batches_of(data), LoopSettings(epochs=10))
    rates = [row["lr"] for row in result.history]
    shares = [0, 1 / 2, *(k / 6 for k in range(6)), 0, 1 / 18]
    expected = [0.02 + 0.08 * (1 + math.cos(math.pi * share)) / 2 for share in shares]
    assert rates == pytest.approx(expected)
    low = make_plan([nn.Parameter(torch.zeros(1))], n_steps=9, lr=1e-5, schedule="cosine-restarts")
    low.scheduler.step(40)
    assert low.optimizer.param_groups[0]["lr"] == pytest.approx(1e-5)
    with pytest.raises(InputError, match="no schedule 'cosin'"):
        make_plan([nn.Parameter(torch.zeros(1))], n_steps=9, schedule="cosin")


def test_gradients_are_clipped(data):
    task = linear_task()
    norms = []

    class Watch(Callback):
        def on_step(self, run, loss):
            grads = [p.grad for p in run.task.parameters()]
            norms.append(torch.cat([g.ravel() for g in grads]).norm().item())

    train(task, batches_of(data), LoopSettings(epochs=1, clip_norm=0.01), callbacks=[Watch()])
    assert max(norms) <= 0.0101


def test_divergence_is_one_clear_error(data):
    class Blowing(SupervisedTask):
        def losses(self, batch, info):
            terms = super().losses(batch, info)
            return {name: term * math.nan for name, term in terms.items()} if info.step else terms

    task = Blowing(nn.Linear(6, 3), bce, {})
    with pytest.raises(DivergedError, match=r"became nan in epoch 1, step 2; lower lr"):
        train(task, batches_of(data), LoopSettings(epochs=3))


def test_a_callback_can_stop_the_run_and_hears_of_its_end(data):
    class Stop(Callback):
        ended = None

        def on_epoch(self, run, row):
            return row["epoch"] == 2

        def on_end(self, run, *, failed):
            self.ended = failed

    callback = Stop()
    result = train(linear_task(), batches_of(data), LoopSettings(epochs=9), callbacks=[callback])
    assert len(result.history) == 2
    assert callback.ended is False


def test_a_callback_hears_of_an_error(data):
    class Fails(Callback):
        def on_epoch(self, run, row):
            raise KeyboardInterrupt

        def on_end(self, run, *, failed):
            self.failed = failed

    callback = Fails()
    with pytest.raises(KeyboardInterrupt):
        train(linear_task(), batches_of(data), LoopSettings(epochs=2), callbacks=[callback])
    assert callback.failed


def test_forked_generators_are_restored_also_after_an_error():
    before = torch.get_rng_state()
    with forked_rng(1):
        first = torch.rand(3)
    with pytest.raises(KeyError), forked_rng(1):
        assert (torch.rand(3) == first).all()
        raise KeyError
    assert (torch.get_rng_state() == before).all()

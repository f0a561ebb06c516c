"""Peer networks: label selection against loops, and that the networks select for each other."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import nn

from labelweave.labels import as_labels
from labelweave.nn.batches import Batch, Batches
from labelweave.nn.callbacks import Callback
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.randomness import forked_rng
from labelweave.nn.task import StepInfo, SupervisedTask, Task, make_plan
from labelweave.nn.training import LoopSettings, train
from labelweave.partial._selection.peer_networks import PeerNetwork, PeerTask, divergence, peers_of
from labelweave.partial.cls import CoLabelSelectionRule
from labelweave.partial.cls_plus import CoLabelSelectionPlusRule
from labelweave.partial.co_teaching import CoTeachingRule
from labelweave.partial.co_teaching_plus import CoTeachingPlusRule
from labelweave.partial.decoupling import DecouplingRule
from labelweave.partial.jocor import JoCoRRule
from labelweave.partial.large_loss import LargeLossRule, PermanentCorrectionRule

NAN = torch.nan
RULES = {
    "cls": CoLabelSelectionRule,
    "cls+": CoLabelSelectionPlusRule,
    "clc": lambda: CoLabelSelectionRule("correct"),
    "co-teaching": CoTeachingRule,
    "co-teaching+": CoTeachingPlusRule,
    "decoupling": DecouplingRule,
    "jocor": lambda: JoCoRRule(0.1),
    "ll-r": LargeLossRule,
    "ll-ct": lambda: LargeLossRule(corrects=True),
    "ll-cp": lambda: PermanentCorrectionRule(40, 5),
}


class OneStep(Task):
    """Like SupervisedTask, but it computes its losses in one go."""

    def losses(self, batch, info):
        return {"bce": mean_loss(bce(self.network(batch.x), batch.y))}

    def optimizers(self, n_steps):
        return [make_plan(self.network.parameters(), n_steps=n_steps, lr=0.01)]


def make_task(rule, *, kind=SupervisedTask, **options):
    torch.manual_seed(0)
    networks = [nn.Linear(4, 5) for _ in range(1 if rule.startswith("ll-") else 2)]
    tasks = [
        SupervisedTask(one, bce, {"lr": 0.01}, name="bce") if kind is SupervisedTask else kind(one)
        for one in networks
    ]
    network = networks[0] if len(networks) == 1 else PeerNetwork(networks)
    return PeerTask(network, tasks, RULES[rule](), **({"tau_h": 0.2} | options)).train()


@pytest.fixture
def batch():
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(8, 4, generator=generator)
    y = (torch.rand(8, 5, generator=generator) < 0.3).float()
    y[0, 0], y[1, 1], y[2, 2] = NAN, -1.0, -1.0  # one is ignored, two are known negatives
    return Batch(x, y, torch.arange(8))


def at(epoch):
    return StepInfo(epoch, 0, 0.0)


def slow_labels(logits, y, tau_h, tau_l, epoch, ramp=10, fill=NAN):
    """Algorithm 1, lines 5 to 8, with loops and sorting."""
    share = {k: min(epoch / ramp * tau, tau) for k, tau in (("h", tau_h), ("l", tau_l))}
    negatives = [(i, j) for i in range(y.shape[0]) for j in range(y.shape[1]) if y[i, j] == 0]
    views = []
    for k in range(len(logits)):

        def loss(place, of=logits[1 - k]):
            return -torch.log(1 - torch.sigmoid(of[place])).item()

        ranked = sorted(negatives, key=loss)
        n_high = round(share["h"] * len(ranked))
        kept = ranked[: len(ranked) - n_high]
        by_loss = sorted(kept, key=lambda place, of=logits[k]: loss(place, of))
        low = by_loss[: round(share["l"] * len(kept))]
        view = y.clamp(min=0).clone()
        for place in ranked[len(ranked) - n_high :]:
            view[place] = fill
        for place in low:
            view[place] = NAN
        views.append(view)
    return views


def same(actual, expected):
    torch.testing.assert_close(actual, expected, equal_nan=True)


@pytest.mark.parametrize("epoch", [0, 3, 10, 50])
@pytest.mark.parametrize(("tau_h", "tau_l"), [(0.2, 0.0), (0.0, 0.4), (0.3, 0.3)])
def test_label_selection_is_the_algorithm(batch, epoch, tau_h, tau_l):
    task = make_task("cls", tau_h=tau_h, tau_l=tau_l)
    logits = [one(batch.x).detach() for one in peers_of(task.network)]
    for selection, expected in zip(
        task.select(logits, batch, at(epoch)),
        slow_labels(logits, batch.y, tau_h, tau_l, epoch),
        strict=True,
    ):
        same(selection, expected)


def test_shifted_logits_rank_as_before():
    x = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    network = PeerNetwork([torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)])
    before = network(x)
    network.shift_logits(-1.5)
    torch.testing.assert_close(network(x), before - 1.5)


def test_positives_and_known_negatives_always_stay(batch):
    task = make_task("cls", tau_h=0.9, tau_l=0.9)
    logits = [10 * torch.randn(8, 5) for _ in range(2)]
    for view in task.select(logits, batch, at(99)):
        assert (view[batch.y == 1] == 1).all()
        assert (view[batch.y == -1] == 0).all()
        assert torch.isnan(view[0, 0])


def test_correction_makes_them_positive(batch):
    task = make_task("clc", tau_h=0.3)
    logits = [one(batch.x).detach() for one in peers_of(task.network)]
    expected = slow_labels(logits, batch.y, 0.3, 0.0, 10, fill=1.0)
    for selection, slow in zip(task.select(logits, batch, at(10)), expected, strict=True):
        same(selection, slow)


def test_softening_uses_the_probability_of_the_peer(batch):
    task = make_task("cls+", tau_h=0.3, tau_l=0.2)
    logits = [one(batch.x).detach() for one in peers_of(task.network)]
    left_out = slow_labels(logits, batch.y, 0.3, 0.2, 10)
    called = slow_labels(logits, batch.y, 0.3, 0.2, 10, fill=1.0)
    for k, selection in enumerate(task.select(logits, batch, at(10))):
        high = torch.isnan(left_out[k]) & (called[k] == 1)
        assert high.any()
        same(selection, torch.where(high, torch.sigmoid(logits[1 - k]), left_out[k]))


def test_peers_choose_for_each_other(batch):
    """What f learns from follows from g's logits alone, and the other way round."""
    task = make_task("cls", tau_h=0.3)
    f, g, other = torch.randn(3, 8, 5)
    for_f, for_g = task.select([f, g], batch, at(10))
    same(task.select([other, g], batch, at(10))[0], for_f)
    same(task.select([f, other], batch, at(10))[1], for_g)
    changed = task.select([f, other], batch, at(10))[0]
    assert not torch.equal(torch.isnan(changed), torch.isnan(for_f))


@pytest.mark.parametrize("rule", ["cls", "clc", "cls+"])
@pytest.mark.parametrize("weight", [0.1, 3.0])
def test_weights_of_unannotated_entries(batch, rule, weight):
    """Known negatives keep their weight; a soft target has the weight that it stands for."""
    task = make_task(rule, tau_h=0.3, tau_l=0.1, negative_weight=weight)
    logits = [one(batch.x) for one in peers_of(task.network)]
    views = task.select([one.detach() for one in logits], batch, at(10))
    expected = 0.0
    for one, view in zip(logits, views, strict=True):
        for i in range(8):
            for j in range(5):
                z, taught = one[i, j], float(view[i, j])
                if batch.y[i, j] != 0 or np.isnan(taught):
                    expected = expected + bce(z, torch.tensor(taught)) / 40
                    continue
                # The probability behind the output of a network trained with such weights.
                p = weight * taught / (weight * taught + 1 - taught)
                positive, negative = (bce(z, torch.tensor(y)) for y in (1.0, 0.0))
                expected = expected + (p * positive + weight * (1 - p) * negative) / 40
    torch.testing.assert_close(task.losses(batch, at(10))["bce"], expected)


def test_a_task_without_steps_gives_the_same(batch):
    """A task without separate outputs needs one more pass and selects the same labels."""
    one, two = (make_task("cls", kind=kind, tau_h=0.3) for kind in (OneStep, SupervisedTask))
    torch.testing.assert_close(one.losses(batch, at(10))["bce"], two.losses(batch, at(10))["bce"])


@pytest.mark.parametrize("kind", [SupervisedTask, OneStep])
def test_agreement_term(batch, kind):
    task = make_task("jocor", kind=kind, tau_h=0.0)
    f, g = (one(batch.x) for one in peers_of(task.network))
    known = ~torch.isnan(batch.y)
    p, q = torch.sigmoid(f), torch.sigmoid(g)
    kl = p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()
    kl = kl + q * (q / p).log() + (1 - q) * ((1 - q) / (1 - p)).log()
    torch.testing.assert_close(divergence(f, g), kl, atol=1e-6, rtol=1e-4)
    terms = task.losses(batch, at(0))
    torch.testing.assert_close(terms["agreement"], 0.1 * (kl * known).mean())
    both = mean_loss(bce(f, batch.y.clamp(min=0))) + mean_loss(bce(g, batch.y.clamp(min=0)))
    torch.testing.assert_close(terms["bce"], 0.9 * both)
    terms["agreement"].backward()
    assert all(one.weight.grad.abs().sum() > 0 for one in peers_of(task.network))


# -- batches with nothing to choose -----------------------------------------------------


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("value", [1.0, 0.0, -1.0, NAN])
def test_batches_all_alike(rule, value):
    """Only positives, only unannotated, only known negatives, only unknown entries."""
    task = make_task(rule, tau_h=0.4, tau_l=0.3)
    batch = Batch(torch.randn(6, 4), torch.full((6, 5), value), torch.arange(6))
    total = sum(task.losses(batch, at(20)).values())
    total.backward()
    assert torch.isfinite(total)
    for one in peers_of(task.network):
        assert torch.isfinite(one.weight.grad).all()


# -- history, estimate, prediction ------------------------------------------------------


def test_history_counts_what_was_removed(batch):
    missing = np.zeros((40, 5), dtype=bool)
    missing[:8] = np.random.default_rng(0).random((8, 5)) < 0.4
    missing[:8] &= batch.y.numpy() == 0
    task = make_task("cls", tau_h=0.5, tau_l=0.2, missing=sp.csr_array(missing))
    views = task.select([torch.randn(8, 5), torch.randn(8, 5)], batch, at(10))
    low = round(0.2 * (int((batch.y == 0).sum()) - round(0.5 * int((batch.y == 0).sum()))))
    removed = [torch.isnan(view) & (batch.y == 0) for view in views]
    task.end_epoch(0)
    row = task.epoch_metrics()
    assert row["removed"] + row["removed_low"] == sum(int(one.sum()) for one in removed) / 2
    assert row["removed_low"] == low
    assert row["removed"] == round(0.5 * int((batch.y == 0).sum()))
    # Those of low loss may be missing positives as well: they are not counted.
    upper = sum(int((one & torch.from_numpy(missing[:8])).sum()) for one in removed) / 2
    assert 0 < row["removed_missing"] <= upper
    task.end_epoch(1)
    assert task.epoch_metrics()["removed"] == 0


def test_the_rate_is_estimated_during_the_ramp():
    rates = iter([0.3, 0.2, 0.1, 0.05])
    task = make_task("cls", tau_h=None, ramp=3, estimate=lambda: next(rates))
    used = []
    for epoch in range(6):
        task.end_epoch(epoch)
        used.append(task.epoch_metrics()["tau_h"])
    assert used == [0, 0.3, 0.2, 0.1, 0.1, 0.1]


def test_one_optimiser_takes_the_same_steps_as_two(batch):
    weights = []
    for together in (False, True):
        task = make_task("cls+", tau_l=0.1, one_optimizer=together)
        plans = task.optimizers(20)
        assert len(plans) == (1 if together else 2)
        for epoch in range(20):
            for plan in plans:
                plan.optimizer.zero_grad()
            sum(task.losses(batch, at(epoch)).values()).backward()
            for plan in plans:
                plan.optimizer.step()
        weights.append(torch.cat([one.detach().ravel() for one in task.network.parameters()]))
    assert torch.equal(*weights)
    assert len(make_task("cls", kind=OneStep, one_optimizer=True).optimizers(20)) == 2


def test_prediction_is_the_mean_of_the_probabilities(batch):
    task = make_task("cls").eval()
    f, g = (torch.sigmoid(one(batch.x)) for one in peers_of(task.network))
    torch.testing.assert_close(task.scores(batch.x), (f + g) / 2)


def test_loss_of_validation_rows_is_over_all_labels(batch):
    task = make_task("cls", tau_h=0.5).eval()
    plain = batch.y.clamp(min=0)
    expected = sum(mean_loss(bce(one(batch.x), plain)) for one in peers_of(task.network))
    torch.testing.assert_close(task.losses(batch, at(50))["bce"], expected)


@pytest.mark.parametrize("rule", ["cls", "ll-cp", "jocor"])
def test_a_killed_run_ends_like_one_that_was_not(rule, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4)).astype(np.float32)
    Y = as_labels((rng.random((40, 5)) < 0.3).astype(np.float32))

    class Kill(Callback):
        def on_step(self, run, loss):
            if run.step == 17:  # in the middle of the fifth epoch
                raise KeyboardInterrupt

    def run(folder, *callbacks):
        rates = iter([0.3, 0.25, 0.2] * 9)
        with forked_rng(0):
            task = make_task(rule, tau_h=None, ramp=3, estimate=lambda: next(rates))
            settings = LoopSettings(8, checkpoint=tmp_path / folder, checkpoint_every=0)
            result = train(task, Batches(X, Y, batch_size=10), settings, callbacks=callbacks)
        return task.state_dict(), result.history

    uninterrupted, history = run("whole.ckpt")
    with pytest.raises(KeyboardInterrupt):
        run("killed.ckpt", Kill())
    again, resumed = run("killed.ckpt")
    for name, value in uninterrupted.items():
        assert torch.equal(value, again[name]), name
    drop = {"seconds"}
    assert [{k: v for k, v in row.items() if k not in drop} for row in history] == [
        {k: v for k, v in row.items() if k not in drop} for row in resumed
    ]

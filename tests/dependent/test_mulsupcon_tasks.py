"""Momentum encoder, queue and masking."""

import copy

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from labelweave.dependent.mulsupcon_tasks import (
    ContrastiveTask,
    KeyQueue,
    masked_features,
    projection_head,
)
from labelweave.nn.batches import Batch
from labelweave.nn.contrastive import mulsupcon
from labelweave.nn.encoders import MLPEncoder
from labelweave.nn.task import StepInfo

INFO = StepInfo(0, 0, 0.0)


def make_task(**changes):
    settings = {"n_dims": 4, "queue_size": 10, "momentum": 0.9, "mask": 0.0,
             "loss": {"temperature": 0.2}, "plan": {"lr": 0.05}}  # fmt: skip
    torch.manual_seed(0)
    return ContrastiveTask(MLPEncoder(6, (8,)), 3, **(settings | changes))


def make_batch(n_rows=4):
    y = (torch.rand(n_rows, 3) < 0.5).float()
    y[0, 0] = torch.nan
    return Batch(torch.randn(n_rows, 6), y, torch.arange(n_rows))


@pytest.mark.parametrize("sizes", [(3, 3, 3, 3), (10, 1), (25, 4, 4), (1,) * 17, ()])
def test_the_queue_holds_exactly_the_last_keys(sizes):
    queue = KeyQueue(10, n_dims=2, n_labels=1)
    pushed = []
    for size in sizes:
        keys = torch.arange(len(pushed), len(pushed) + size).float()
        queue.push(torch.stack([keys, -keys], dim=1), keys[:, None])
        pushed += keys.tolist()
        assert queue.is_full() == (len(pushed) >= 10)
        held, labels = queue.keys[: len(pushed)], queue.labels[: len(pushed)]
        assert sorted(held[:, 0].tolist()) == pushed[-10:]
        assert torch.equal(held[:, 1], -held[:, 0])
        assert torch.equal(labels[:, 0], held[:, 0])


def test_an_empty_queue_stays_empty():
    queue = KeyQueue(0, n_dims=2, n_labels=1)
    queue.push(torch.ones(3, 2), torch.ones(3, 1))
    assert queue.keys.shape == (0, 2)


def test_steps_equal_a_slow_recomputation():
    """Key weights, queue and loss of several steps, against copies kept by hand."""
    task = make_task()
    for module in task.modules():  # random numbers would differ between the two
        if hasattr(module, "p"):
            module.p = 0.0
    (plan,) = task.optimizers(n_steps=5)
    key_network = copy.deepcopy(task.network)
    slow_weights = [p.detach().clone() for p in task.key_network.parameters()]
    keys, labels = [], []
    for _ in range(5):
        batch = make_batch()
        loss = task.losses(batch, INFO)["contrast"]
        for parameter, value in zip(key_network.parameters(), slow_weights, strict=True):
            parameter.data = value.clone()
        with torch.no_grad():
            new = F.normalize(key_network(batch.x), dim=1)
            queries = F.normalize(copy.deepcopy(task.network)(batch.x), dim=1)
        queued = slice(-10, None) if len(keys) >= 10 else slice(0)  # used once it is full
        against = torch.cat([new, *keys[queued]]), torch.cat([batch.y, *labels[queued]])
        expected = mulsupcon(queries, against[0], batch.y, against[1], temperature=0.2)
        torch.testing.assert_close(loss, expected)
        plan.optimizer.zero_grad()
        loss.backward()
        plan.optimizer.step()
        task.after_step(batch, INFO)
        keys += list(new[:, None])
        labels += list(batch.y[:, None])
        slow_weights = [
            0.9 * kept + 0.1 * moved.detach()
            for kept, moved in zip(slow_weights, task.network.parameters(), strict=True)
        ]
        for weights, slow in zip(task.key_network.parameters(), slow_weights, strict=True):
            torch.testing.assert_close(weights.data, slow)
    torch.testing.assert_close(task.queue.keys, torch.cat(keys[-10:]))  # 20 keys: two rounds


def test_no_gradient_reaches_the_keys():
    task = make_task()
    task.losses(make_batch(), INFO)["contrast"].backward()
    assert all(p.grad is None for p in task.key_network.parameters())
    assert all(p.grad is not None for p in task.network.parameters())


def test_checkpoints_hold_key_network_and_queue():
    task, other = make_task(), make_task()
    task.losses(make_batch(), INFO)
    task.after_step(make_batch(), INFO)
    other.load_state_dict(task.state_dict())
    for name in ("keys", "labels", "n_pushed"):
        stored, expected = getattr(other.queue, name), getattr(task.queue, name)
        torch.testing.assert_close(stored, expected, equal_nan=True)
    names = set(task.state_dict())
    assert {"queue.keys", "queue.labels", "queue.n_pushed"} <= names
    assert any(name.startswith("key_network") for name in names)


def test_validation_leaves_the_queue_alone():
    task = make_task().eval()
    task.losses(make_batch(), INFO)
    assert task.queue.n_pushed == 0


@pytest.mark.parametrize(("n_in", "width"), [(256, 256), (512, 256), (2048, 1024), (511, 256)])
def test_the_head_halves_the_width_where_it_can(n_in, width):
    linear = [layer for layer in projection_head(n_in, 256).modules() if hasattr(layer, "weight")]
    assert [tuple(layer.weight.shape) for layer in linear] == [
        (width, n_in),
        (width,),
        (256, width),
    ]


def test_masking_sets_the_given_share_to_zero():
    x = torch.full((400, 50), 3.0)
    masked = masked_features(x, 0.3)
    assert set(masked.unique().tolist()) == {0.0, 3.0}
    assert (masked == 0).float().mean().item() == pytest.approx(0.3, abs=0.02)


def test_queries_and_keys_are_masked_apart():
    task = make_task(mask=0.5)
    seen = []
    for network in (task.network, task.key_network):
        network.register_forward_pre_hook(lambda _, given: seen.append(given[0] == 0))
    task.losses(make_batch(50), INFO)
    queries, keys = seen
    both = (queries & keys).float().mean().item()
    assert both == pytest.approx(0.25, abs=0.1)  # a quarter where the two are independent
    assert queries.float().mean().item() == pytest.approx(0.5, abs=0.1)

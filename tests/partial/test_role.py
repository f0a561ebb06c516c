"""ROLE: both halves of its objective against the paper's equations."""

import torch
from torch import nn

from labelweave.nn.batches import Batch
from labelweave.nn.task import StepInfo
from labelweave.partial.role import FreeLabelsTask


def test_the_objective():
    """Both halves of the objective; the gradient of each stops at the other."""
    torch.manual_seed(1)
    y = torch.tensor([[1, 0, -1], [0, 1, torch.nan], [0, 0, 0], [1, 0, 0]])
    batch = Batch(torch.randn(4, 2), y, torch.tensor([5, 0, 3, 2]))
    task = FreeLabelsTask(nn.Linear(2, 3), {"lr": 0.1}, (6, 3), k=1.2, weight=2.0, label_lr=1)
    task.train()
    f, free = task.network(batch.x), task.labels[batch.rows]
    ignored = torch.isnan(batch.y)
    terms = task.losses(batch, StepInfo(0, 0, 0.0))

    def half(one, other):
        estimate = torch.where(batch.y == -1, 0.0, torch.sigmoid(other))
        estimate = torch.where(ignored, torch.nan, estimate)
        p = torch.sigmoid(one)
        entries = -(estimate * torch.log(p) + (1 - estimate) * torch.log(1 - p))
        entries = torch.where(batch.y == 1, entries - torch.log(p), entries).nan_to_num(0.0)
        return entries.mean(), 2 * ((p[~ignored].sum() / 4 - 1.2) / 3) ** 2

    (on_f, expected_f), (on_free, expected_free) = half(f, free), half(free, f)
    torch.testing.assert_close(terms["network"], on_f / 2)
    torch.testing.assert_close(terms["labels"], on_free / 2)
    torch.testing.assert_close(terms["expected"], (expected_f + expected_free) / 2)
    terms["network"].backward(retain_graph=True)
    assert task.labels.grad is None
    task.network.zero_grad()
    terms["labels"].backward()
    assert task.network.weight.grad is None or (task.network.weight.grad == 0).all()
    touched = task.labels.grad.abs().sum(dim=1) > 0
    assert touched.nonzero().ravel().tolist() == [0, 2, 3, 5]
    assert [plan.optimizer.param_groups[0]["lr"] for plan in task.optimizers(9)] == [0.1, 1]

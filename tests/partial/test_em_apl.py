"""EM + APL: its objective over two epochs against loops."""

import torch
from torch import nn

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce, entropy_maximisation
from labelweave.nn.task import StepInfo
from labelweave.partial.em_apl import PseudoNegativesTask


def at(epoch):
    return StepInfo(epoch, 0, 0.0)


def test_pseudo_negatives():
    torch.manual_seed(0)
    y = torch.tensor([[1, 0, -1], [0, 1, torch.nan], [0, 0, 0], [1, 0, 0]])
    batch = Batch(torch.randn(4, 2), y, torch.tensor([5, 0, 3, 2]))
    task = PseudoNegativesTask(
        nn.Linear(2, 3),
        lambda z, y, _: entropy_maximisation(z, y, alpha=0.2),
        {},
        n_rows=6,
        n_labels=3,
        warmup=1,
        ramp=2,
        share=0.8,
        beta=0.5,
    ).train()
    plain, unannotated = batch.y.clamp(min=0), batch.y == 0

    def entropy(z):
        entries = entropy_maximisation(z, plain, alpha=0.2)
        entries[0, 2] = bce(z, plain)[0, 2]
        return entries

    z = task.network(batch.x)
    torch.testing.assert_close(task.losses(batch, at(0))["entropy"], entropy(z).mean())
    seen = torch.sigmoid(z).detach()
    with torch.no_grad():
        task.network.weight += 0.3
    z = task.network(batch.x)
    value = task.losses(batch, at(1))["entropy"]
    expected = entropy(z)
    for j in range(3):  # the lower 40 % of each label's unannotated entries, by epoch 0
        values = seen[:, j][unannotated[:, j]]
        threshold = torch.quantile(values, 0.4)
        for i in range(4):
            if unannotated[i, j] and seen[i, j] <= threshold:
                expected[i, j] = 0.5 * bce(z[i, j], seen[i, j])
    torch.testing.assert_close(value, expected.mean())

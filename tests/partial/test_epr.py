"""EPR: its two terms against sums over entries, and its estimate."""

import pytest
import torch
from torch import nn

import labelweave as lw
from labelweave.nn.batches import Batch
from labelweave.nn.losses import expected_positives
from labelweave.nn.task import StepInfo
from labelweave.partial.epr import ExpectedTask

QUICK = {"hidden": (16,), "epochs": 12, "lr": 2e-2}


def test_expected_positives():
    p = torch.rand(7, 5, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    total = sum(float(value) for row in p for value in row)
    assert expected_positives(p, 1.5).item() == pytest.approx(((total / 7 - 1.5) / 5) ** 2)


def test_both_terms():
    torch.manual_seed(0)
    y = torch.tensor([[1, 0, -1], [0, 1, torch.nan], [0, 0, 0], [1, 0, 0]])
    batch = Batch(torch.randn(4, 2), y, torch.arange(4))
    task = ExpectedTask(nn.Linear(2, 3), {}, k=1.2, weight=3.0)
    z = task.network(batch.x)
    positives = -torch.log(torch.sigmoid(z))[batch.y == 1].sum()
    checked = -torch.log(1 - torch.sigmoid(z))[0, 2]
    terms = task.losses(batch, StepInfo(0, 0, 0.0))
    torch.testing.assert_close(terms["positive_bce"], (positives + checked) / 12)
    assert terms["expected"].item() == pytest.approx(
        3 * ((torch.sigmoid(z)[~torch.isnan(batch.y)].sum().item() / 4 - 1.2) / 3) ** 2, rel=1e-5
    )


def test_expected_positives_are_estimated(data):
    X, Y, partial = data
    model = lw.EPR(lw.MLP(**QUICK), random_state=0).fit(X, partial)
    assert partial.sum(axis=1).mean() < model.expected_ < 2 * Y.sum(axis=1).mean()
    with_number = lw.EPR(lw.MLP(**QUICK), random_state=0, expected=1.5).fit(X, partial)
    assert with_number.expected_ == 1.5
    assert with_number.predict_proba(X).sum(axis=1).mean() == pytest.approx(1.5, rel=0.35)

"""C-Tran: tokens and states, label-mask training, labels known at prediction."""

import numpy as np
import pytest
import torch

from labelweave.dependent._networks.label_attention import LabelMaskTask
from labelweave.dependent.ctran import CTran
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce
from labelweave.nn.task import StepInfo


def quick(**changes):
    settings = {"size": 16, "heads": 2, "layers": 1, "n_tokens": 2, "hidden": (32,), "epochs": 15}
    return CTran(**(settings | {"lr": 1e-2, "random_state": 0} | changes))


def test_the_network_is_attention_over_feature_and_label_tokens(data):
    """Written out: tokens with states, layer norm, blocks, a classifier a label."""
    X, Y = data
    model = quick(epochs=2, layers=2).fit(X, Y)
    network = model.network_
    x = model.scaling_.apply(torch.from_numpy(X[:3].astype(np.float32)))
    known = torch.tensor([[1.0, torch.nan, 0.0, torch.nan, torch.nan]] * 3)
    labels = network.labels.vectors.repeat(3, 1, 1).detach()
    labels[:, 0] += network.labels.states[1]
    labels[:, 2] += network.labels.states[0]
    tokens = network.norm(torch.cat([network.features(x), labels], dim=1))
    for block in network.blocks:
        tokens = block(tokens, tokens)
    logits = torch.stack(
        [tokens[:, 2 + j] @ network.readout.weight[j] + network.readout.bias[j] for j in range(5)],
        dim=1,
    )
    torch.testing.assert_close(network(x, known), logits)
    logits = logits.detach()
    probabilities = model.predict_proba(X[:3], known=known.numpy())
    hidden = torch.isnan(known).numpy()
    np.testing.assert_allclose(
        probabilities[hidden], torch.sigmoid(logits).numpy()[hidden], atol=1e-5
    )


def make_task(**options):
    torch.manual_seed(0)
    network = CTran(size=8, heads=2, layers=1, n_tokens=2, hidden=(6,), norm=None)
    return LabelMaskTask(network._build_network(4, 6), bce, {}, name="bce", **options)


def make_batch():
    rng = torch.Generator().manual_seed(0)
    y = torch.randint(0, 2, (50, 6), generator=rng).float()
    y[torch.rand(y.shape, generator=rng) < 0.2] = torch.nan
    return Batch(torch.randn(50, 4, generator=rng), y, torch.arange(50))


def test_only_what_a_row_was_not_told_counts(monkeypatch):
    task, batch = make_task(most=0.75), make_batch()
    told = torch.full_like(batch.y, torch.nan)
    told[:, :2] = batch.y[:, :2]
    where = "labelweave.dependent._networks.label_attention.mask_labels"
    monkeypatch.setattr(where, lambda targets, most, rows: told)
    task.train()
    for module in task.network.modules():
        if hasattr(module, "p"):
            module.p = 0.0
    (loss,) = task.losses(batch, StepInfo(0, 0, 0.0)).values()
    p = torch.sigmoid(task.network(batch.x, told))
    total = 0.0
    for i in range(50):
        for j in range(6):
            if torch.isnan(told[i, j]) and not torch.isnan(batch.y[i, j]):
                total -= torch.log(p[i, j] if batch.y[i, j] == 1 else 1 - p[i, j])
    torch.testing.assert_close(loss, total / 300)


def test_validation_rows_have_no_known_label_and_every_other_label():
    task, batch = make_task(most=0.75).eval(), make_batch()
    losses = task.losses(batch, StepInfo(0, 0, 0.0))
    torch.testing.assert_close(losses["none_known"], bce(task.network(batch.x), batch.y).mean())
    told, asked = torch.full_like(batch.y, torch.nan), batch.y.clone()
    for i in range(50):
        for j in range(6):
            if (i + j) % 2 == 0:
                told[i, j] = batch.y[i, j]
                asked[i, j] = torch.nan
    expected = bce(task.network(batch.x, told), asked).mean()
    torch.testing.assert_close(losses["half_known"], expected)
    task = make_task(most=0.0).eval()
    assert list(task.losses(batch, StepInfo(0, 0, 0.0))) == ["bce"]


def test_a_model_that_was_never_told_labels_refuses_them(data):
    model = quick(most_known=0.0, epochs=1).fit(*data)
    with pytest.raises(InputError, match="most_known=0 the model has not learnt"):
        model.predict_proba(data[0], known=data[1])

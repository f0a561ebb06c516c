"""LaMP: the order of its messages, its graphs, and the losses of its steps."""

import numpy as np
import pytest
import torch

from labelweave.dependent.lamp import LaMP, LaMPTask
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce
from labelweave.nn.task import StepInfo


def quick(**changes):
    settings = {"size": 16, "heads": 2, "layers": 2, "n_tokens": 2, "hidden": (32,), "epochs": 15}
    return LaMP(**(settings | {"lr": 1e-2, "random_state": 0} | changes))


@pytest.mark.parametrize("graph", ["full", "co-occurrence", "none"])
def test_labels_hear_features_then_labels(data, graph):
    X, Y = data
    Y = Y.copy()
    Y[:, 0] &= ~Y[:, 1]  # two labels that never meet
    model = quick(epochs=2, graph=graph, feature_layers=1).fit(X, Y)
    network = model.network_
    x = model.scaling_.apply(torch.from_numpy(X[:3].astype(np.float32)))
    features = network.features(x)
    features = network.among_features[0](features, features)
    nodes = network.labels.vectors.repeat(3, 1, 1)
    edges = torch.ones(5, 5, dtype=torch.bool)
    if graph == "co-occurrence":
        edges[0, 1] = edges[1, 0] = False
        assert torch.equal(network.edges, edges)
    for t in range(2):
        nodes = network.from_features[t](nodes, features)
        if graph != "none":
            nodes = network.from_labels[t](nodes, nodes, edges)
    logits = (nodes * network.readout.weight).sum(dim=-1) + network.readout.bias
    expected = torch.sigmoid(logits).detach().numpy()
    np.testing.assert_allclose(model.predict_proba(X[:3]), expected, atol=1e-5)


def test_steps_before_the_last_count_by_their_weight():
    torch.manual_seed(0)
    model = LaMP(size=8, heads=2, n_tokens=2, hidden=(6,), norm=None, dropout=0, encoder_dropout=0)
    model._edges = None
    network = model._build_network(4, 3)
    options = {"name": "bce", "most": 0.75, "rows": 0.0}
    y = torch.tensor([[1.0, 0.0, torch.nan]] * 5)
    batch = Batch(torch.randn(5, 4), y, torch.arange(5))
    losses = [bce(network.readout(nodes), y).mean() for nodes in network.steps(batch.x)]
    assert len(losses) == 4
    task = LaMPTask(network, bce, {}, intermediate_weight=0.3, **options).train()
    terms = task.losses(batch, StepInfo(0, 0, 0.0))
    torch.testing.assert_close(terms["bce"], losses[-1])
    torch.testing.assert_close(terms["intermediate"], 0.3 * sum(losses[:-1]))
    plain = LaMPTask(network, bce, {}, intermediate_weight=0.0, **options).train()
    assert list(plain.losses(batch, StepInfo(0, 0, 0.0))) == ["bce"]
    assert list(task.eval().losses(batch, StepInfo(0, 0, 0.0))) == ["bce"]


def test_one_step_alone_has_none_before_it(data):
    model = quick(epochs=2, graph="none", layers=1).fit(*data)
    assert "intermediate" not in model.history_


@pytest.mark.parametrize(
    ("changes", "reason"),
    [({"known_rows": 0.0}, "known_rows=0"), ({"graph": "none"}, "graph='none'")],
)
def test_a_model_that_cannot_use_known_labels_refuses_them(data, changes, reason):
    model = quick(epochs=1, **changes).fit(*data)
    with pytest.raises(InputError, match=f"{reason} the model has not learnt"):
        model.predict_proba(data[0], known=data[1])

"""ML-GCN: the re-weighted graph and the convolutions, against loops."""

import numpy as np
import pytest
import torch

import labelweave as lw
from labelweave.dependent.mlgcn import MLGCN, reweighted_graph
from labelweave.exceptions import InputError
from labelweave.export import serving_module
from labelweave.labels import as_labels


def quick(**changes):
    settings = {"hidden": (32,), "graph_hidden": (16,), "vector_size": 12, "epochs": 15}
    return MLGCN(**(settings | {"lr": 1e-2, "random_state": 0} | changes))


def graph_by_loops(Y, tau, p):
    """Eq. 6 to 8 and the normalisation, one pair at a time."""
    n_labels = Y.shape[1]
    hears = np.zeros((n_labels, n_labels))
    for i in range(n_labels):
        for j in range(n_labels):
            seen = [row[j] for row in Y if row[i] == 1 and not np.isnan(row[j])]
            hears[i, j] = i != j and len(seen) > 0 and sum(seen) > 0 and np.mean(seen) >= tau
    weighted = np.zeros_like(hears)
    for i in range(n_labels):
        for j in range(n_labels):
            if i == j:
                weighted[i, j] = 1 - p
            elif hears[i].sum():
                weighted[i, j] = p * hears[i, j] / hears[i].sum()
    degree = weighted.sum(axis=1)
    return weighted / np.sqrt(degree[:, None] * degree[None, :])


@pytest.mark.parametrize("unknown", [0.0, 0.3])
@pytest.mark.parametrize(("tau", "p"), [(0.4, 0.2), (0.3, 0.6), (1.0, 0.2), (0.5, 0.0)])
def test_the_graph_equals_loops(unknown, tau, p):
    rng = np.random.default_rng(0)
    Y = (rng.random((40, 6)) < 0.4).astype(np.float32)
    Y[:, 3] = Y[:, 1]
    Y[rng.random(Y.shape) < unknown] = np.nan
    Y[:, 5] = 0
    graph = reweighted_graph(as_labels(Y), tau=tau, p=p)
    np.testing.assert_allclose(graph.toarray(), graph_by_loops(Y, tau, p))


def test_classifiers_are_two_convolutions_of_the_vectors(data):
    X, Y = data
    model = quick(tau=0.3).fit(X, Y)
    network, graph = model.network_, model.graph_.toarray()
    assert (graph > 0).sum() > 5
    first, second = (layer.weight.detach().numpy() for layer in network.convolutions)
    vectors = network.vectors.detach().numpy()
    heard = graph @ vectors @ first.T
    heard = np.where(heard > 0, heard, 0.2 * heard)
    classifiers = graph @ heard @ second.T
    with torch.no_grad():
        np.testing.assert_allclose(network.classifiers().numpy(), classifiers, atol=1e-5)
        x = model.scaling_.apply(torch.from_numpy(X.astype(np.float32)))
        logits = network.encoder(x).numpy() @ classifiers.T
    np.testing.assert_allclose(model.predict_proba(X), 1 / (1 + np.exp(-logits)), atol=1e-5)


def test_given_vectors_stay_as_they_are_and_are_saved(data, tmp_path):
    X, Y = data
    vectors = np.random.default_rng(0).normal(size=(5, 7)).astype(np.float32)
    named = as_labels(Y, names=list("edcba"))
    by_name = dict(zip("edcba", vectors, strict=True))
    model = quick(label_vectors=lambda names: [by_name[name] for name in names]).fit(X, named)
    np.testing.assert_array_equal(model.network_.vectors.detach().numpy(), vectors)
    as_array = quick(label_vectors=vectors).fit(X, named)
    np.testing.assert_array_equal(as_array.predict_proba(X), model.predict_proba(X))
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.label_vectors, vectors)
    np.testing.assert_array_equal(loaded.label_vectors_, vectors)


def test_vectors_that_do_not_fit_are_refused(data):
    with pytest.raises(InputError, match=r"shape \(4, 7\), but there are 5 labels"):
        quick(label_vectors=np.zeros((4, 7))).fit(*data)
    vectors = np.zeros((5, 7))
    vectors[3, 2] = np.nan
    with pytest.raises(InputError, match="'label_3' in label_vectors has NaN"):
        quick(label_vectors=vectors).fit(*data)


def test_learnt_vectors_are_learnt(data):
    rough = quick(epochs=1).fit(*data).network_.vectors
    longer = quick(epochs=5).fit(*data).network_.vectors
    assert not torch.allclose(rough, longer)


def test_what_is_served_has_no_graph(data):
    X, _ = data
    model = quick(epochs=2).fit(*data)
    module = serving_module(model)
    assert "convolutions" not in dict(module.network.named_children())
    with torch.no_grad():
        probabilities = module(torch.from_numpy(X.astype(np.float32))).numpy()
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-6)


def test_another_precision(data):
    pytest.importorskip("lightning_fabric")
    X, Y = data
    model = quick(epochs=2, precision="bf16-mixed", patience=None).fit(X, Y)
    plain = quick(epochs=2, patience=None).fit(X, Y)
    np.testing.assert_allclose(model.predict_proba(X), plain.predict_proba(X), atol=0.1)

"""RBCC: the cell against torch's, exact probabilities, labels known at prediction."""

import itertools

import numpy as np
import pytest
import torch

import labelweave as lw
from labelweave.dependent.rbcc import RBCC
from labelweave.metrics import subset_accuracy
from labelweave.nn.batches import Batch
from labelweave.nn.task import StepInfo

SMALL = {"hidden_size": 12, "encoder": (16,), "dropout": 0.0, "norm": None}
QUICK = {**SMALL, "epochs": 20, "lr": 1e-2, "random_state": 0}
START = StepInfo(0, 0, 0.0)


def make_network(parents, n_features=4):
    torch.manual_seed(0)
    network = RBCC(**SMALL)._build_network(n_features, len(parents)).eval()
    network.set_parents(np.array(parents))
    return network


def alike(n_rows=400, seed=0):
    """Features say nothing; one coin decides three labels, another a fourth."""
    rng = np.random.default_rng(seed)
    X, coins = rng.normal(size=(n_rows, 3)), rng.integers(0, 2, (n_rows, 2))
    flips = (rng.random((n_rows, 2)) < 0.1).astype(int)
    first = coins[:, 0]
    return X, np.stack([first ^ flips[:, 0], first, first ^ flips[:, 1], coins[:, 1]], axis=1)


def test_the_cell_is_torchs_gated_recurrent_unit():
    parents = [-1, 0, 1, 0]
    network = make_network(parents)
    cell = torch.nn.GRUCell(12, 12)
    cell.weight_ih.data, cell.bias_ih.data = network.from_input.weight, network.from_input.bias
    cell.weight_hh.data, cell.bias_hh.data = network.from_state.weight, network.from_state.bias
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    tables = network.tables(x)
    state = torch.tanh(network.state(network.encoder(x)))
    for j, parent in enumerate(parents):
        for value in (0, 1):
            read = network.label_vectors[j] + (
                network.parent_vectors[parent, value] if parent >= 0 else 0
            )
            hidden = cell(read.expand(5, -1), state)
            p = torch.sigmoid(hidden @ network.out[j] + network.bias[j])
            torch.testing.assert_close(tables[:, j, value, 1].exp(), p)
            torch.testing.assert_close(tables[:, j, value, 0].exp(), 1 - p)


def test_the_loss_is_that_of_labels_given_their_parents():
    parents = [-1, 0, 1, 0]
    model = RBCC(**SMALL)
    task = model._build_task(make_network(parents), None)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(6, 4, generator=generator)
    y = (torch.rand(6, 4, generator=generator) < 0.5).float()
    tables = task.network.tables(x)
    expected = 0.0
    for i, row in enumerate(y.int().tolist()):
        for j, parent in enumerate(parents):
            expected -= tables[i, j, row[parent] if parent >= 0 else 0, row[j]].item()
    loss = task.losses(Batch(x, y, torch.arange(6)), START)["likelihood"]
    assert loss.item() == pytest.approx(expected / 24, rel=1e-5)
    hidden = y.clone()
    hidden[:, 1] = torch.nan  # summed over both of its values
    both = [y.clone(), y.clone()]
    both[0][:, 1], both[1][:, 1] = 0, 1
    likelihoods = [task.network.forest.log_likelihood(tables, labels).exp() for labels in both]
    loss = task.losses(Batch(x, hidden, torch.arange(6)), START)["likelihood"]
    torch.testing.assert_close(loss, -torch.log(sum(likelihoods)).mean() / 4)


def test_dependence_beyond_the_features_is_found_and_told():
    X, Y = alike()
    model = RBCC(**QUICK).fit(X, Y)
    edges = {frozenset((j, int(p))) for j, p in enumerate(model.parents_) if p >= 0}
    assert edges == {frozenset((0, 1)), frozenset((1, 2))}
    without = RBCC(**QUICK, structure=None).fit(X, Y)
    assert (without.parents_ == -1).all()
    known = np.full(Y.shape, np.nan)
    known[:, 0] = Y[:, 0]
    second = model.predict_proba(X, known=known)[:, 1]
    assert np.abs(second - np.where(Y[:, 0] == 1, 0.9, 0.1)).mean() < 0.1
    assert np.abs(without.predict_proba(X, known=known)[:, 1] - 0.5).mean() < 0.2


def test_what_the_features_explain_makes_no_edge_between_errors():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 3))
    Y = (rng.random((600, 2)) < 0.5 + 0.45 * X[:, :1]).astype(int)
    assert (RBCC(**QUICK, structure="labels").fit(X, Y).parents_ >= 0).sum() == 1
    assert (RBCC(**QUICK, structure="errors").fit(X, Y).parents_ >= 0).sum() == 0


def test_best_sets_are_right_as_a_whole_more_often():
    """Of two coins that exclude each other each is unlikely, and yet one of three is there."""
    rng = np.random.default_rng(0)
    X, which = rng.normal(size=(600, 2)), rng.integers(0, 3, 600)
    Y = np.eye(3, dtype=int)[which]
    model = RBCC(**QUICK).fit(X[:400], Y[:400])
    by_label, joint = model.predict(X[400:]), model.most_probable_sets(X[400:])
    assert subset_accuracy(Y[400:], joint) >= subset_accuracy(Y[400:], by_label)
    tables = model.network_.tables(model.scaling_.apply(torch.from_numpy(X[400:405]).float()))
    for row, best in zip(tables, joint, strict=False):
        sets = itertools.product([0, 1], repeat=3)
        parents = model.parents_.tolist()

        def score(labels, row=row, parents=parents):
            return sum(
                row[j, labels[p] if p >= 0 else 0, labels[j]].item() for j, p in enumerate(parents)
            )

        assert tuple(best) == max(sets, key=score)
    known = np.full((200, 3), np.nan)
    known[:, 1] = 1
    assert (model.most_probable_sets(X[400:], known=known)[:, 1] == 1).all()


def test_saved_models_keep_their_network_of_labels(tmp_path):
    X, Y = alike()
    model = RBCC(**QUICK).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.parents_, model.parents_)
    known = np.where(np.arange(4) == 0, Y, np.nan)
    np.testing.assert_array_equal(
        loaded.predict_proba(X, known=known), model.predict_proba(X, known=known)
    )

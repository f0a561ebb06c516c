"""Additions to CLS: label evidence against least squares, its weight, and weights of entries."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import expit, logit

import labelweave as lw
from labelweave.data.scenarios import keep_single_positive
from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce
from labelweave.nn.task import StepInfo, SupervisedTask
from labelweave.partial._selection.peer_networks import PeerNetwork, PeerTask, peers_of
from labelweave.partial.cls import CLS, CoLabelSelectionRule
from labelweave.partial.cls_plus import LabelEvidence, entry_weight


def pairs(n=2000, seed=0):
    """Annotations of two labels that always go together and of a third; six of ten are kept."""
    rng = np.random.default_rng(seed)
    first, third = rng.random(n) < 0.3, rng.random(n) < 0.3
    truth = np.column_stack([first, first, third])
    return truth, truth & (rng.random(truth.shape) < 0.6)


def test_evidence_is_a_ridge_regression_on_the_other_labels():
    _, positive = pairs(80)
    fitted = np.arange(80) % 4 > 0
    found = LabelEvidence(sp.csr_array(positive), fitted).logits
    mean = positive[fitted].mean(axis=0)
    for j in range(3):
        others = np.delete(positive - mean, j, axis=1)
        sums = others[fitted].T @ others[fitted] + 20 * np.eye(2)
        w = np.linalg.solve(sums, others[fitted].T @ (positive[fitted, j] - mean[j]))
        predicted = np.clip(others @ w + mean[j], 1e-4, 1 - 1e-4)
        np.testing.assert_allclose(found[:, j], logit(predicted) - logit(mean[j]), atol=1e-3)


def test_the_weight_of_evidence_follows_its_value():
    truth, positive = pairs()
    codes, rows = positive.astype(float), np.arange(1000)
    evidence = LabelEvidence(sp.csr_array(positive), np.arange(2000) >= 1000)
    rng = np.random.default_rng(1)
    blind = expit(rng.normal(size=(1000, 3)))
    combined = evidence.add_to(blind, codes[rows], rows)
    assert float(evidence.weight) > 1
    missing = (codes[rows, 1] == 0) & truth[rows, 1]
    negative = ~truth[rows, 1]
    assert combined[missing, 1].mean() > combined[negative, 1].mean() + 0.2
    assert abs(blind[missing, 1].mean() - blind[negative, 1].mean()) < 0.1
    alone = rng.random((2000, 3)) < 0.3
    unrelated = LabelEvidence(sp.csr_array(alone), np.arange(2000) >= 1000)
    unrelated.add_to(expit(rng.normal(4.0 * alone[rows] - 2)), alone[rows].astype(float), rows)
    assert np.abs(unrelated.weighted(rows)).mean() < 0.1
    assert np.abs(evidence.weighted(rows)).mean() > 1


def test_selection_uses_logits_and_evidence():
    _, positive = pairs(40)
    evidence = LabelEvidence(sp.csr_array(positive), np.ones(40, bool))
    networks = [torch.nn.Linear(2, 3) for _ in range(2)]
    tasks = [SupervisedTask(one, bce, {}) for one in networks]
    batch = Batch(torch.randn(40, 2), torch.from_numpy(positive).float(), torch.arange(40))
    rule = CoLabelSelectionRule(evidence=evidence)
    task = PeerTask(PeerNetwork(networks), tasks, rule, tau_h=0.1, ramp=1)
    logits = [one(batch.x).detach() for one in peers_of(task.network)]
    for weight in (0.0, 1.0, 50.0):
        evidence.weight.fill_(weight)
        views = task.select(logits, batch, StepInfo(5, 5, 0.5))
        for k, view in enumerate(views):
            ranked = logits[1 - k].numpy() + weight * evidence.logits
            unannotated = ~positive
            n = round(0.1 * unannotated.sum())
            removed = unannotated & (ranked >= np.sort(ranked[unannotated])[-n])
            np.testing.assert_array_equal(np.isnan(view.numpy()), removed)
    assert "rule.evidence.weight" in task.state_dict()  # checkpoints save it


def quick(**changes):
    base = lw.MLP(hidden=(16,), epochs=6, lr=2e-2, patience=None)
    return CLS(**({"base": base, "random_state": 0, "ramp": 3} | changes))


def test_weight_of_unannotated_entries():
    few = np.zeros((2, 26))
    few[:, 0] = 1
    assert entry_weight(as_labels(few)) == pytest.approx(2.5 * 2 / 50)
    assert [entry_weight(as_labels(np.full((2, 3), value))) for value in (0.0, 1.0)] == [1, 1]


def test_evidence_is_used_if_its_weight_can_be_estimated():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    together = (X[:, :1] + rng.normal(size=(300, 1)) > 0.3) * np.ones((1, 3))
    partial = together * (rng.random(together.shape) < 0.6)

    def scores(**changes):
        return quick(**changes).fit(X, partial).predict_proba(X)

    with_evidence = scores(label_evidence=True)
    np.testing.assert_array_equal(scores(), with_evidence)
    assert not np.array_equal(with_evidence, scores(label_evidence=False))
    without = scores(action="remove", label_evidence=False)  # the paper's action uses losses only
    np.testing.assert_array_equal(scores(action="remove"), without)
    for changes in ({"tau_h": 0.1}, {"base": lw.MLP(hidden=(16,), epochs=3)}):
        with pytest.raises(InputError, match="label_evidence needs tau_h='auto'"):
            quick(label_evidence=True, **changes).fit(X, partial)


def test_one_label_per_row_is_no_evidence(data):
    X, Y, _ = data
    single = keep_single_positive(Y, random_state=0).Y
    np.testing.assert_array_equal(
        *(quick(label_evidence=on).fit(X, single).predict_proba(X) for on in (True, False))
    )

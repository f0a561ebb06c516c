"""What labels say of other labels: against least squares, and whether it is weighed rightly."""

import numpy as np
import scipy.sparse as sp
import torch
from scipy.special import expit, logit

from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce
from labelweave.nn.task import StepInfo, SupervisedTask
from labelweave.partial._selection.label_evidence import LabelEvidence
from labelweave.partial._selection.peer_networks import PeerNetwork, PeerTask, peers_of
from labelweave.partial._selection.strategies import STRATEGIES


def pairs(n=2000, seed=0):
    """Annotations of two labels that always go together and of a third; six of ten are kept."""
    rng = np.random.default_rng(seed)
    first, third = rng.random(n) < 0.3, rng.random(n) < 0.3
    truth = np.column_stack([first, first, third])
    return truth, truth & (rng.random(truth.shape) < 0.6)


def test_log_odds_are_those_of_a_ridge_without_the_label_itself():
    _, positive = pairs(80)
    fitted = np.arange(80) % 4 > 0
    found = LabelEvidence(sp.csr_array(positive), fitted).log_odds
    mean = positive[fitted].mean(axis=0)
    for j in range(3):
        others = np.delete(positive - mean, j, axis=1)
        sums = others[fitted].T @ others[fitted] + 20 * np.eye(2)
        w = np.linalg.solve(sums, others[fitted].T @ (positive[fitted, j] - mean[j]))
        chance = np.clip(others @ w + mean[j], 1e-4, 1 - 1e-4)
        np.testing.assert_allclose(found[:, j], logit(chance) - logit(mean[j]), atol=1e-3)


def test_it_weighs_much_where_scores_know_nothing_and_nothing_where_labels_do_not():
    truth, positive = pairs()
    codes, rows = positive.astype(float), np.arange(1000)
    evidence = LabelEvidence(sp.csr_array(positive), np.arange(2000) >= 1000)
    rng = np.random.default_rng(1)
    blind = expit(rng.normal(size=(1000, 3)))
    joined = evidence.weigh(blind, codes[rows], rows)
    assert float(evidence.weight) > 1
    missing = (codes[rows, 1] == 0) & truth[rows, 1]
    negative = ~truth[rows, 1]
    assert joined[missing, 1].mean() > joined[negative, 1].mean() + 0.2
    assert abs(blind[missing, 1].mean() - blind[negative, 1].mean()) < 0.1
    alone = rng.random((2000, 3)) < 0.3
    unrelated = LabelEvidence(sp.csr_array(alone), np.arange(2000) >= 1000)
    unrelated.weigh(expit(rng.normal(4.0 * alone[rows] - 2)), alone[rows].astype(float), rows)
    assert np.abs(unrelated.of(rows)).mean() < 0.1
    assert np.abs(evidence.of(rows)).mean() > 1


def test_peers_choose_by_both():
    """A label that the networks do not see, and the labels of the row do, is found."""
    _, positive = pairs(40)
    evidence = LabelEvidence(sp.csr_array(positive), np.ones(40, bool))
    networks = [torch.nn.Linear(2, 3) for _ in range(2)]
    tasks = [SupervisedTask(one, bce, {}) for one in networks]
    batch = Batch(torch.randn(40, 2), torch.from_numpy(positive).float(), torch.arange(40))
    task = PeerTask(
        PeerNetwork(networks), tasks, STRATEGIES["cls"], tau_h=0.1, ramp=1, evidence=evidence
    )
    logits = [one(batch.x).detach() for one in peers_of(task.network)]
    for weight in (0.0, 1.0, 50.0):
        evidence.weight.fill_(weight)
        views = task.choose(logits, batch, StepInfo(5, 5, 0.5))
        for k, view in enumerate(views):
            judged = logits[1 - k].numpy() + weight * evidence.log_odds
            is_open = ~positive
            n = round(0.1 * is_open.sum())
            cut = np.sort(judged[is_open])[-n]
            np.testing.assert_array_equal(np.isnan(view.numpy()), is_open & (judged >= cut))
    assert "evidence.weight" in task.state_dict()  # so that a checkpoint holds it

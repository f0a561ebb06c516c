"""CLS+: its rule and its additions against slow computations, and the rows that are held out."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.special import expit, logit

import labelweave as lw
from labelweave.capabilities import capabilities
from labelweave.data.scenarios import keep_single_positive
from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce
from labelweave.nn.task import StepInfo, SupervisedTask
from labelweave.partial._selection.peer_networks import PeerNetwork, PeerTask, peers_of
from labelweave.partial._selection.posterior import annotation_rate, shifted
from labelweave.partial._selection.selection_rules import MiniBatch
from labelweave.partial.cls_plus import (
    CLSPlus,
    CoLabelSelectionPlusRule,
    LabelEvidence,
    entry_weight,
)

RUN = {"hidden": (16,), "epochs": 6, "lr": 2e-2, "patience": None}


def two(**changes):
    """One pair of networks, trained quickly."""
    settings = {"base": lw.MLP(**RUN), "n_pairs": 1, "random_state": 0, "ramp": 3}
    return CLSPlus(**settings | changes)


# -- entry weights, label evidence, soft targets ---------------------------------------


def pairs(n=2000, seed=0):
    """Annotations of two labels that always go together and of a third; six of ten are kept."""
    rng = np.random.default_rng(seed)
    first, third = rng.random(n) < 0.3, rng.random(n) < 0.3
    truth = np.column_stack([first, first, third])
    return truth, truth & (rng.random(truth.shape) < 0.6)


def test_evidence_is_a_ridge_regression_on_the_other_labels():
    _, positive = pairs(80)
    fitted = np.arange(80) % 4 > 0
    logits = LabelEvidence(sp.csr_array(positive), fitted).logits
    mean = positive[fitted].mean(axis=0)
    for j in range(3):
        others = np.delete(positive - mean, j, axis=1)
        sums = others[fitted].T @ others[fitted] + 20 * np.eye(2)
        w = np.linalg.solve(sums, others[fitted].T @ (positive[fitted, j] - mean[j]))
        predicted = np.clip(others @ w + mean[j], 1e-4, 1 - 1e-4)
        np.testing.assert_allclose(logits[:, j], logit(predicted) - logit(mean[j]), atol=1e-3)


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
    rule = CoLabelSelectionPlusRule(soften=False, evidence=evidence)
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
        return two(**changes).fit(X, partial).predict_proba(X)

    with_evidence = scores(label_evidence=True)
    np.testing.assert_array_equal(scores(), with_evidence)
    assert not np.array_equal(with_evidence, scores(label_evidence=False))
    without = scores(action="remove", label_evidence=False)  # the paper's action uses losses only
    np.testing.assert_array_equal(scores(action="remove"), without)
    for changes in ({"tau_h": 0.1}, {"base": lw.MLP(hidden=(16,), epochs=3)}):
        with pytest.raises(InputError, match="label_evidence needs tau_h='auto'"):
            two(label_evidence=True, **changes).fit(X, partial)


def test_one_label_per_row_is_no_evidence(data):
    X, Y, _ = data
    single = keep_single_positive(Y, random_state=0).Y
    np.testing.assert_array_equal(
        *(two(label_evidence=on).fit(X, single).predict_proba(X) for on in (True, False))
    )


def test_entries_are_softened_where_the_objective_is_cross_entropy(data):
    X, _, partial = data

    def scores(base, action):
        return two(base=base, tau_h=0.2, action=action).fit(X, partial).predict_proba(X)

    plain, other = lw.MLP(**RUN), lw.MLP(**RUN, loss="zlpr")
    np.testing.assert_array_equal(scores(plain, "auto"), scores(plain, "soften"))
    np.testing.assert_array_equal(scores(other, "auto"), scores(other, "remove"))
    with pytest.raises(InputError, match="objective of MLP does not support soft targets"):
        scores(other, "soften")


def test_an_objective_without_weights_of_entries(data):
    X, _, partial = data
    base = lw.make("c2ae", **{**lw.methods.get_class("c2ae")._test_params(), "epochs": 1})
    with pytest.raises(InputError, match="C2AE does not support weights of entries"):
        CLSPlus(base=base, negative_weight=0.5, random_state=0).fit(X, partial)
    auto, one = (
        CLSPlus(base=base, negative_weight=weight, random_state=0).fit(X, partial).predict_proba(X)
        for weight in ("auto", 1.0)
    )
    np.testing.assert_array_equal(auto, one)


def test_the_rate_is_estimated_without_clean_labels(data):
    X, Y, partial = data
    model = two(base=lw.MLP(**{**RUN, "epochs": 12}), ramp=8).fit(X, partial)
    missing = ((partial == 0) & (Y == 1)).sum() / (partial == 0).sum()
    assert missing / 3 < model.history_["tau_h"].iloc[-1] < 3 * missing


# -- pairs of networks ------------------------------------------------------------------


@pytest.mark.parametrize("soften", [True, False])
def test_pairs_select_nothing_for_each_other(soften):
    """Four networks learn what two fits of one pair learn from the same mini-batch."""
    rng = np.random.default_rng(0)
    unannotated = rng.random((8, 5)) < 0.7
    targets = np.where(unannotated, 0.0, 1.0)
    logits = [rng.normal(size=(8, 5)) for _ in range(4)]

    def learnt(chosen):
        batch = MiniBatch(
            logits=chosen,
            targets=targets,
            candidates=[unannotated] * len(chosen),
            rows=np.arange(8),
            drop_high=0.3,
            drop_low=0.1,
        )
        return [one.targets for one in CoLabelSelectionPlusRule(soften=soften).select(batch)]

    together = learnt(logits)
    np.testing.assert_array_equal(together, [*learnt(logits[:2]), *learnt(logits[2:])])
    assert not np.array_equal(together[0], together[2], equal_nan=True)


def test_two_pairs_hold_out_four_tenths_and_predict_by_their_mean(data, held_out):
    X, _, partial = data
    model = CLSPlus(lw.MLP(**RUN), random_state=0).fit(X, partial)
    assert [np.count_nonzero(held_out[0] == k) for k in range(-1, 4)] == [144, 24, 24, 24, 24]
    x = (torch.as_tensor(X, dtype=torch.float32) - model.scaling_.shift) * model.scaling_.factor
    with torch.inference_mode():
        mean = np.mean([torch.sigmoid(peer(x)).numpy() for peer in peers_of(model.network_)], 0)
    assert len(peers_of(model.network_)) == 4
    by = float(model.network_.shift)
    np.testing.assert_allclose(model.predict_proba(X), shifted(mean, by), atol=1e-5)


def test_at_most_four_pairs_because_each_network_holds_out_a_tenth(data):
    X, _, partial = data
    with pytest.raises(ValueError, match=r"n_pairs.*range \[1, 4\]"):
        two(n_pairs=5).fit(X, partial)


# -- held-out rows ----------------------------------------------------------------------


def selected(rule, held_out_by):
    """What each network learns from one mini-batch, in the epoch after the ramp."""
    torch.manual_seed(0)
    networks = [torch.nn.Linear(3, 4) for _ in range(2)]
    tasks = [SupervisedTask(one, bce, {}) for one in networks]
    task = PeerTask(PeerNetwork(networks), tasks, rule, tau_h=0.2, ramp=1, held_out_by=held_out_by)
    y = (torch.rand(6, 4) < 0.3).float()
    rows = torch.arange(6) + 2
    batch = Batch(x=torch.randn(6, 3), y=y, rows=rows)
    logits = [network(batch.x).detach() for network in networks]
    return task.select(logits, batch, StepInfo(5, 5, 0.5)), y


@pytest.mark.parametrize("soften", [True, False])
def test_a_network_does_not_learn_from_its_held_out_rows(soften):
    held_out_by = np.array([0, 0, 0, -1, 1, -1, -1, 0])  # rows 2 to 7 are in the batch
    views, y = selected(CoLabelSelectionPlusRule(soften=soften), held_out_by)
    for k, view in enumerate(views):
        is_held_out = held_out_by[2:] == k
        assert torch.isnan(view[is_held_out]).all()
        n_high = round(0.2 * int((y[~is_held_out] == 0).sum()))
        soft = (view[~is_held_out] > 0) & (view[~is_held_out] < 1)
        assert int((soft if soften else torch.isnan(view[~is_held_out])).sum()) == n_high


@pytest.fixture
def held_out(monkeypatch):
    """The arrays `held_out_by` of all fits of the test."""
    arrays = []
    build_task = CLSPlus._build_task

    def spy(model, run):
        arrays.append(run.held_out.held_out_by)
        return build_task(model, run)

    monkeypatch.setattr(CLSPlus, "_build_task", spy)
    return arrays


def test_held_out_rows_are_scored_by_the_network_that_did_not_learn_from_them(data, held_out):
    X, _, partial = data
    model = two().fit(X, partial)
    of_row = held_out[0]
    assert len(of_row) == len(X)  # no other rows are held out
    assert [np.count_nonzero(of_row == k) for k in (-1, 0, 1)] == [192, 24, 24]
    labels, scores = model._out_of_fold_predictions()
    expected = []
    for k, peer in enumerate(peers_of(model.network_)):
        held_out_rows = torch.as_tensor(X[of_row == k], dtype=torch.float32)
        with torch.inference_mode():
            logits = peer((held_out_rows - model.scaling_.shift) * model.scaling_.factor)
            expected.append(torch.sigmoid(logits + model.network_.shift))
    np.testing.assert_allclose(scores, torch.cat(expected).numpy(), atol=1e-5)
    np.testing.assert_array_equal(
        labels.to_numpy(), np.concatenate([partial[of_row == k] for k in (0, 1)])
    )


@pytest.mark.parametrize("negative_weight", [0.05, 1])
def test_no_more_labels_are_expected_than_estimated(data, negative_weight):
    """The estimate: annotated positives over their estimated share, whatever the weights."""
    X, _, partial = data
    model = two(negative_weight=negative_weight).fit(X, partial)
    labels, scores = model._out_of_fold_predictions()
    codes = labels.to_numpy()
    expected = codes.sum() / annotation_rate(scores, codes)
    before = shifted(scores, -float(model.network_.shift)).sum()
    assert scores.sum() == pytest.approx(min(expected, before), rel=1e-3)
    assert model.threshold_.expected_ == pytest.approx(scores.sum() / len(codes), rel=1e-3)


def test_the_shift_is_saved_with_the_model(data, tmp_path):
    X, _, partial = data
    model = two().fit(X, partial)
    model.network_.shift_logits(-0.5)
    model.save(tmp_path / "model")
    again = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_labels_of_held_out_rows_are_not_learnt(data, held_out, monkeypatch):
    """The weights of a network do not depend on the labels of the rows that it holds out."""
    X, _, partial = data
    plain = {"tau_h": 0.0, "tau_l": 0.0, "negative_weight": 1}
    first = two(**plain).fit(X, partial)
    # The folds follow the labels: keep those of the first fit.
    monkeypatch.setattr(
        "labelweave.partial._selection.held_out.stratified_folds",
        lambda *_, **__: np.where(held_out[0] < 0, 9, held_out[0]),
    )
    changed = partial.copy()
    changed[held_out[0] == 0] = 1 - changed[held_out[0] == 0]
    second = two(**plain).fit(X, changed)
    same, other = zip(peers_of(first.network_), peers_of(second.network_), strict=True)
    assert all(torch.equal(a, b) for a, b in zip(*(n.parameters() for n in same), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(*(n.parameters() for n in other), strict=True))


def test_validation_rows_are_learnt_too_and_need_no_truth(data):
    X, Y, partial = data
    model = two()
    model.fit(X[:200], partial[:200], validation=(X[200:], partial[200:]), truth=Y[:200])
    assert len(model._out_of_fold_predictions()[0]) == 48  # two tenths of all 240
    assert model.history_["removed_missing"].iloc[-1] > 0
    with pytest.raises(InputError, match=r"truth has shape \(150, 4\), but Y has \(200, 4\)"):
        two().fit(X[:200], partial[:200], truth=Y[:150])


def test_early_stopping_and_clean_rows_need_no_held_out_tenths():
    assert capabilities(two()).out_of_fold
    assert not capabilities(CLSPlus(lw.MLP(patience=5))).out_of_fold
    assert not capabilities(two(validation="clean")).out_of_fold


def test_too_few_rows_to_hold_any_out():
    X, Y = np.eye(2), np.eye(2)
    assert two(threshold=0.5).fit(X, Y).predict_proba(X).shape == (2, 2)
    with pytest.raises(InputError, match="too few to tune a threshold"):
        two().fit(X, Y)

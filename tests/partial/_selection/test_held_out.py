"""Each of two networks holds out a tenth of the rows, from which the other one learns."""

import numpy as np
import pytest
import torch

import labelweave as lw
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce
from labelweave.nn.task import StepInfo, SupervisedTask
from labelweave.partial._selection.peer_networks import PeerNetwork, PeerTask, peers_of
from labelweave.partial._selection.posterior import annotation_rate, shifted
from labelweave.partial.base import SHORT_RUN
from labelweave.partial.cls import CLS, CoLabelSelectionRule
from labelweave.partial.co_teaching import CoTeachingRule
from labelweave.partial.jocor import JoCoRRule

RUN = {"hidden": (16,), "epochs": 6, "lr": 2e-2, "patience": None}


def two(**changes):
    return CLS(**({"base": lw.MLP(**RUN), "random_state": 0, "ramp": 3} | changes))


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


@pytest.mark.parametrize(
    "rule",
    [CoLabelSelectionRule(), CoLabelSelectionRule("correct"), CoTeachingRule(), JoCoRRule(0.1)],
    ids=["cls", "clc", "co-teaching", "jocor"],
)
def test_a_network_does_not_learn_from_its_held_out_rows(rule):
    held_out_by = np.array([0, 0, 0, -1, 1, -1, -1, 0])  # rows 2 to 7 are in the batch
    views, y = selected(rule, held_out_by)
    for k, view in enumerate(views):
        own = held_out_by[2:] == k
        assert torch.isnan(view[own]).all()
        assert not torch.isnan(view[~own]).all()
        if not rule.corrects and isinstance(rule, CoLabelSelectionRule):
            n_unannotated = int((y[~own] == 0).sum())
            assert int(torch.isnan(view[~own]).sum()) == round(0.2 * n_unannotated)


@pytest.fixture
def held_out(monkeypatch):
    """The arrays `held_out_by` of all fits of the test."""
    arrays = []
    train = CLS._train

    def spy(model, run):
        arrays.append(run.held_out.held_out_by)
        train(model, run)

    monkeypatch.setattr(CLS, "_train", spy)
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
        own = torch.as_tensor(X[of_row == k], dtype=torch.float32)
        with torch.inference_mode():
            logits = peer((own - model.scaling_.shift) * model.scaling_.factor)
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


def test_one_network_and_early_stopping_hold_rows_out(data):
    assert capabilities(two()).out_of_fold
    assert not capabilities(CLS(lw.MLP(patience=5))).out_of_fold
    assert not capabilities(lw.make("wan")).out_of_fold
    assert not capabilities(two(validation="clean")).out_of_fold


def test_too_few_rows_to_hold_any_out():
    X, Y = np.eye(2), np.eye(2)
    assert two(threshold=0.5).fit(X, Y).predict_proba(X).shape == (2, 2)
    with pytest.raises(InputError, match="too few to tune a threshold"):
        two().fit(X, Y)


def test_short_runs_are_the_default_except_for_the_baseline():
    for id, expected in {"jocor": SHORT_RUN, "wan": SHORT_RUN}.items():
        base = lw.make(id).set_params(base__verbose=0).base
        assert {name: base.get_params()[name] for name in expected} == expected
    assert lw.make("an").set_params(base__verbose=0).base.patience == lw.MLP().patience

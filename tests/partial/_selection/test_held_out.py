"""Each of two networks sets a tenth of the rows aside: no row is lost to both."""

import numpy as np
import pytest
import torch

import labelweave as lw
from labelweave.capabilities import capabilities
from labelweave.data.scenarios import keep_single_positive
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce
from labelweave.nn.task import StepInfo, SupervisedTask
from labelweave.partial._selection.peer_networks import PeerNetwork, PeerTask, peers_of
from labelweave.partial._selection.posterior import annotation_rate, shifted
from labelweave.partial._selection.strategies import STRATEGIES
from labelweave.partial.base import SHORT_RUN
from labelweave.partial.cls import CLS

RUN = {"hidden": (16,), "epochs": 6, "lr": 2e-2, "patience": None}


def two(**changes):
    return CLS(**({"base": lw.MLP(**RUN), "random_state": 0, "ramp": 3} | changes))


def chosen(strategy, aside):
    """What each network of a strategy learns of one mini-batch, in the epoch after the ramp."""
    torch.manual_seed(0)
    networks = [torch.nn.Linear(3, 4) for _ in range(2)]
    tasks = [SupervisedTask(one, bce, {}) for one in networks]
    task = PeerTask(
        PeerNetwork(networks), tasks, STRATEGIES[strategy], tau_h=0.2, ramp=1, aside=aside
    )
    y = (torch.rand(6, 4) < 0.3).float()
    rows = torch.arange(6) + 2
    batch = Batch(x=torch.randn(6, 3), y=y, rows=rows)
    logits = [network(batch.x).detach() for network in networks]
    return task.choose(logits, batch, StepInfo(5, 5, 0.5)), y


@pytest.mark.parametrize("strategy", ["cls", "clc", "co-teaching", "jocor"])
def test_a_network_is_not_shown_the_rows_that_it_sets_aside(strategy):
    aside = np.array([0, 0, 0, -1, 1, -1, -1, 0])  # of rows 0 to 7; 2 to 7 are in the batch
    views, y = chosen(strategy, aside)
    for k, view in enumerate(views):
        own = aside[2:] == k
        assert torch.isnan(view[own]).all()
        assert not torch.isnan(view[~own]).all()
        if strategy == "cls":  # a fifth of the unannotated entries that it learns
            n_open = int((y[~own] == 0).sum())
            assert int(torch.isnan(view[~own]).sum()) == round(0.2 * n_open)


def test_the_rows_set_aside_are_scored_by_the_network_that_did_not_learn_them(data, monkeypatch):
    X, _, partial = data
    kept = []
    learn = CLS._learn

    def spied(model, network, session):
        learn(model, network, session)
        kept.append((model._aside.of_row, session.X))

    monkeypatch.setattr(CLS, "_learn", spied)
    model = two().fit(X, partial)
    of_row, rows = kept[0]
    assert len(rows) == len(X)  # none is held out
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
def test_no_more_labels_are_expected_than_there_seem_to_be(data, negative_weight):
    """Annotated ones over the estimated share that is annotated, whatever weights have raised."""
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
    model.network_.move(-0.5)
    model.save(tmp_path / "model")
    again = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_the_labels_of_rows_set_aside_teach_nothing(data, monkeypatch):
    """A network's weights are the same whatever the labels of the rows that it sets aside."""
    X, _, partial = data
    learn = CLS._learn
    places = []

    def spied(model, network, session):
        learn(model, network, session)
        places.append(model._aside.of_row)

    monkeypatch.setattr(CLS, "_learn", spied)
    plain = {"tau_h": 0.0, "tau_l": 0.0, "negative_weight": 1}
    first = two(**plain).fit(X, partial)
    # The folds follow the labels: keep those of the first fit.
    monkeypatch.setattr(
        "labelweave.partial._selection.held_out.stratified_folds",
        lambda *_, **__: np.where(places[0] < 0, 9, places[0]),
    )
    changed = partial.copy()
    changed[places[0] == 0] = 1 - changed[places[0] == 0]
    second = two(**plain).fit(X, changed)
    same, other = zip(peers_of(first.network_), peers_of(second.network_), strict=True)
    assert all(torch.equal(a, b) for a, b in zip(*(n.parameters() for n in same), strict=True))
    assert not all(torch.equal(a, b) for a, b in zip(*(n.parameters() for n in other), strict=True))


def test_validation_rows_are_learnt_too_and_their_truth_is_not_asked_for(data):
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


def test_too_few_rows_to_set_any_aside():
    X, Y = np.eye(2), np.eye(2)
    assert two(threshold=0.5).fit(X, Y).predict_proba(X).shape == (2, 2)
    with pytest.raises(InputError, match="too few to tune a threshold"):
        two().fit(X, Y)


def test_the_short_run_is_the_room_s_and_not_the_bottom_line_s():
    for id, expected in {"jocor": SHORT_RUN, "wan": SHORT_RUN}.items():
        base = lw.make(id).set_params(base__verbose=0).base
        assert {name: base.get_params()[name] for name in expected} == expected
    assert lw.make("an").set_params(base__verbose=0).base.patience == lw.MLP().patience


def test_other_labels_count_where_they_can_be_weighed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    together = (X[:, :1] + rng.normal(size=(300, 1)) > 0.3) * np.ones((1, 3))
    partial = together * (rng.random(together.shape) < 0.6)
    heeding = two(label_evidence=True).fit(X, partial)
    deaf = two(label_evidence=False).fit(X, partial)
    default = two().fit(X, partial)
    np.testing.assert_array_equal(default.predict_proba(X), heeding.predict_proba(X))
    assert not np.array_equal(heeding.predict_proba(X), deaf.predict_proba(X))
    removing = two(action="remove").fit(X, partial)  # the paper's looks at losses alone
    plain = two(action="remove", label_evidence=False).fit(X, partial)
    np.testing.assert_array_equal(removing.predict_proba(X), plain.predict_proba(X))
    for changes in ({"tau_h": 0.1}, {"base": lw.MLP(hidden=(16,), epochs=3)}):
        with pytest.raises(InputError, match="label_evidence needs tau_h='auto'"):
            two(label_evidence=True, **changes).fit(X, partial)


def test_one_label_a_row_is_no_evidence(data):
    X, Y, _ = data
    single = keep_single_positive(Y, random_state=0).Y
    found = [two(label_evidence=given).fit(X, single).predict_proba(X) for given in (True, False)]
    np.testing.assert_array_equal(*found)

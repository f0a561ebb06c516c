"""Cross-fitted expectation maximisation: which rows and targets each network learns from."""

import numpy as np
import pytest
import torch
from scipy.special import expit
from sklearn.metrics import roc_auc_score

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.task import StepInfo
from labelweave.partial import cross_em
from labelweave.partial._selection.peer_networks import peers_of
from labelweave.partial._selection.posterior import shifted
from labelweave.partial.cross_em import CrossFitEM, SoftTargetsTask

QUICK = {"hidden": (16,), "epochs": 10, "lr": 2e-2}


def quick(**changes):
    settings = {"base": lw.MLP(**QUICK), "n_folds": 3, "ramp": 3, "random_state": 0}
    return CrossFitEM(**(settings | changes))


def test_the_loss_entry_by_entry():
    torch.manual_seed(0)
    network = torch.nn.Linear(3, 4)
    soft_targets = torch.rand(6, 4)
    task = SoftTargetsTask(network, {"lr": 0.1}, soft_targets, weight=0.3).train()
    x, rows = torch.randn(2, 3), torch.tensor([4, 1])
    y = torch.tensor([[1.0, 0.0, -1.0, torch.nan], [0.0, 0.0, 1.0, 0.0]])
    value = task.losses(Batch(x, y, rows), StepInfo(0, 0, 0.0))["bce"].item()
    z = network(x).detach().numpy()
    total = 0.0
    for i in range(2):
        for j in range(4):
            code = y[i, j].item()
            if np.isnan(code):
                continue
            target = soft_targets[rows[i], j].item() if code == 0 else max(code, 0.0)
            p = expit(z[i, j])
            loss = -target * np.log(p) - (1 - target) * np.log(1 - p)
            total += (0.3 if code == 0 else 1.0) * loss
    assert value == pytest.approx(total / 8, rel=1e-5)


def test_each_row_is_labelled_by_the_network_that_did_not_learn_it(data, monkeypatch):
    X, _, partial = data
    seen, scored, soft_targets = [], [], []
    train = cross_em.TrainingSession.train

    def spy(session, task, **changes):
        result = train(session, task, **changes)
        seen.append((session.prefix, session.X, session.validation[0]))
        soft_targets.append(getattr(task, "soft_targets", None))
        with torch.inference_mode():
            x = session.scaling.apply(torch.from_numpy(session.validation[0]).float())
            scored.append(task.scores(x).numpy())
        return result

    posteriors = []
    compute = cross_em.positive_posterior
    monkeypatch.setattr(cross_em.TrainingSession, "train", spy)
    monkeypatch.setattr(
        cross_em,
        "positive_posterior",
        lambda *a: posteriors.append((a, compute(*a))) or posteriors[-1][1],
    )
    monkeypatch.setattr(cross_em, "annotation_posterior", lambda scores, codes: scores)
    model = quick(label_evidence=False).fit(X, partial)
    assert [name for name, *_ in seen] == [
        f"round-{r}-fold-{k}-" for r in (1, 2) for k in (1, 2, 3)
    ]
    (scores, rate), posterior = posteriors[0]
    assert rate == model.annotation_rate_
    for k in range(3):
        _, learnt, held = seen[k]
        assert len(learnt) + len(held) == len(X)
        rows = [int(np.flatnonzero((row == X).all(axis=1))[0]) for row in held]
        assert not {tuple(row) for row in held} & {tuple(row) for row in learnt}
        np.testing.assert_allclose(scores[rows], scored[k], atol=1e-5)
        # The network of the second round learns the posteriors of the same rows.
        rest = np.setdiff1d(np.arange(len(X)), rows)
        np.testing.assert_array_equal(seen[3 + k][1], X[rest])
        np.testing.assert_allclose(soft_targets[3 + k].numpy(), posterior[rest], atol=1e-6)
        assert soft_targets[k] is None


def test_the_mean_of_the_folds_predicts(data):
    X, _, partial = data
    model = quick().fit(X, partial)
    x = model.scaling_.apply(torch.from_numpy(X).float())
    with torch.inference_mode():
        each = [torch.sigmoid(peer(x)).numpy() for peer in peers_of(model.network_)]
    assert len(each) == 3
    expected = shifted(np.mean(each, axis=0), float(model.network_.shift))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-5)


def test_rounds_are_a_setting(data):
    X, Y, partial = data
    none, one = quick(rounds=0).fit(X, partial), quick().fit(X, partial)
    assert none.annotation_rate_ is None
    assert 0.3 < one.annotation_rate_ < 0.9  # half are annotated
    assert len(none.history_["stage"].unique()) == 3
    unannotated = partial == 0
    for model in (none, one):  # hidden positives rank above negatives
        assert roc_auc_score(Y[unannotated], model.predict_proba(X)[unannotated]) > 0.8


def test_a_saved_model(data, tmp_path):
    X, _, partial = data
    model = quick().fit(X, partial)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert loaded.annotation_rate_ == model.annotation_rate_


def test_clean_validation_rows_stop_every_network(data):
    X, Y, partial = data
    model = quick(validation="clean").fit(X[:160], partial[:160], validation=(X[160:], Y[160:]))
    assert "val_map" in model.history_
    with pytest.raises(InputError, match="annotated in full"):
        quick(validation="clean").fit(X, partial)


def test_no_row_is_lost_to_the_threshold(data):
    """Out of fold, the number of predicted labels equals the sum of the scores."""
    X, _, partial = data
    model = quick().fit(X, partial)
    predicted, expected = model.predict(X).sum(), model.predict_proba(X).sum()
    assert predicted == pytest.approx(expected, rel=0.2)


@pytest.mark.parametrize("wrong", [{"n_folds": 1}, {"rounds": -1}, {"soft_weight": 0}])
def test_settings_outside_their_range_are_refused(data, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        quick(**wrong).fit(data[0], data[2])


def test_fewer_rows_than_folds_are_refused(data):
    with pytest.raises(InputError, match="n_folds is 3, but there are fewer rows"):
        quick().fit(data[0][:2], data[2][:2])


@pytest.mark.parametrize("label_evidence", [True, False])
def test_label_evidence_is_a_setting(data, monkeypatch, label_evidence):
    X, _, partial = data
    asked = []

    def spy(posterior, codes, *, X, random_state):
        asked.append((posterior, codes))
        return posterior

    monkeypatch.setattr(cross_em, "annotation_posterior_given_labels", spy)
    quick(label_evidence=label_evidence).fit(X, partial)
    assert len(asked) == int(label_evidence)
    if asked:
        posterior, codes = asked[0]
        assert posterior.shape == codes.shape == partial.shape

"""CLS: the algorithm against loops written from the paper, and the estimator around it."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.partial._selection.peer_networks import PeerNetwork, peers_of
from labelweave.partial._selection.selection_rules import MiniBatch
from labelweave.partial.cls import CLS, CoLabelSelectionRule, co_label_selection

QUICK = {"hidden": (16,), "epochs": 6, "lr": 2e-2}


def quick(**changes):
    given = {"base": lw.MLP(**QUICK), "random_state": 0, "ramp": 3}
    return CLS(**(given | changes))


def slow_algorithm(losses_f, losses_g, candidates, keep_high, keep_low):
    """Lines 6 and 7 of Algorithm 1 with sorted lists of labels (i, j)."""

    def sel_min(labels, count, losses):
        return sorted(labels, key=lambda label: losses[label])[:count]

    def sel_max(labels, count, losses):
        return sorted(labels, key=lambda label: losses[label], reverse=True)[:count]

    negatives = [tuple(label) for label in np.argwhere(candidates).tolist()]
    n_true = round(keep_high * len(negatives))
    true_f = sel_min(negatives, n_true, losses_g)  # Eq. 1
    true_g = sel_min(negatives, n_true, losses_f)  # Eq. 2
    n_informative = round(keep_low * n_true)
    informative_f = sel_max(true_f, n_informative, losses_f)  # Eq. 3
    informative_g = sel_max(true_g, n_informative, losses_g)  # Eq. 4
    return set(informative_f), set(informative_g)


@pytest.mark.parametrize("keep_high", [0.0, 0.7, 0.99, 1.0])
@pytest.mark.parametrize("keep_low", [0.0, 0.6, 0.98, 1.0])
@pytest.mark.parametrize("shape", [(6, 5), (60, 40)])
def test_co_label_selection_is_algorithm_1(keep_high, keep_low, shape):
    rng = np.random.default_rng(0)
    losses_f, losses_g = rng.random((2, *shape))
    candidates = rng.random(shape) < 0.8
    selected = co_label_selection(losses_f, losses_g, candidates, keep_high, keep_low)
    expected = slow_algorithm(losses_f, losses_g, candidates, keep_high, keep_low)
    for mask, labels in zip(selected, expected, strict=True):
        assert {tuple(label) for label in np.argwhere(mask).tolist()} == labels


def test_the_rule_of_the_estimator_is_the_same_selection():
    """Positives stay, and the selected candidates are learnt as negatives."""
    rng = np.random.default_rng(1)
    f, g = rng.normal(size=(2, 16, 9)).astype(np.float32)
    targets = (rng.random((16, 9)) < 0.2).astype(np.float32)
    candidates = targets == 0
    batch = MiniBatch([f, g], targets, [candidates] * 2, np.arange(16), 0.1, 0.3)
    expected = co_label_selection(f, g, candidates, 1 - 0.1, 1 - 0.3)
    for selection, mask in zip(CoLabelSelectionRule().select(batch), expected, strict=True):
        np.testing.assert_array_equal(~np.isnan(selection.targets), mask | ~candidates)
        assert (selection.targets[~candidates] == 1).all()


def test_two_networks_with_different_initial_weights(data):
    X, _, partial = data
    model = quick().fit(X, partial)
    assert isinstance(model.network_, PeerNetwork)
    f, g = peers_of(model.network_)
    assert not torch.equal(f[1].weight, g[1].weight)


@pytest.mark.parametrize(
    "base",
    [
        "mlp",
        lw.MLP(loss="asl", **QUICK),
        lw.CGMVAE(**lw.CGMVAE._test_params()),
        lw.MulSupCon(**lw.MulSupCon._test_params()),
    ],
    ids=["by name", "mlp with asl", "c-gmvae", "mulsupcon"],
)
def test_any_network(data, base):
    X, Y, partial = data
    model = CLS(base, random_state=0).set_params(base__epochs=4)
    model.fit(X[:120], partial[:120])
    found = model.predict_proba(X[120:])
    assert found.shape == (120, 4)
    assert found[Y[120:] == 1].mean() > found[Y[120:] == 0].mean()
    assert {"removed", "tau_h"} <= set(model.history_.columns)


def test_each_peer_is_pretrained_by_itself(data, tmp_path):
    X, _, partial = data
    base = lw.MulSupCon(**lw.MulSupCon._test_params(), checkpoint=tmp_path)
    model = CLS(base.set_params(epochs=3), random_state=0).fit(X, partial)
    stages = list(dict.fromkeys(model.history_["stage"]))
    assert stages == ["peer-1-pretraining", "peer-2-pretraining", "training"]


def test_history_counts_missing_positives_among_the_removed(data):
    X, Y, partial = data
    model = quick(tau_h=0.2, tau_l=0.1).fit(X, partial, truth=Y)
    history = model.history_
    assert history["removed"].iloc[0] == 0
    unannotated = 0.8 * (partial == 0).sum()  # a fifth is held out
    assert history["removed"].iloc[-1] == pytest.approx(0.2 * unannotated, rel=0.1)
    share = (history["removed_missing"] / history["removed"]).iloc[2:]
    by_chance = ((partial == 0) & (Y == 1)).sum() / (partial == 0).sum()
    assert (share > by_chance).all()
    assert (history["removed_low"].iloc[3:] > 0).all()
    assert "removed_missing" not in quick().fit(X, partial).history_


def test_truth_is_only_counted(data):
    X, Y, partial = data
    plain, counted = quick().fit(X, partial), quick().fit(X, partial, truth=Y)
    np.testing.assert_array_equal(plain.predict_proba(X), counted.predict_proba(X))
    assert vars(plain).keys() == vars(counted).keys()
    with pytest.raises(InputError, match="truth has shape"):
        quick().fit(X, partial, truth=Y[:, :2])


def test_ablations_are_settings(data):
    X, _, partial = data
    models = {
        "cls": quick(tau_h=0.2, tau_l=0.2),
        "cls-h": quick(tau_h=0, tau_l=0.2),
        "cls-l": quick(tau_h=0.2, tau_l=0),
        "removed": quick(tau_h=0.2, tau_l=0.2, action="remove"),
        "clc": quick(tau_h=0.2, tau_l=0.2, action="correct"),
        "neither": quick(tau_h=0, tau_l=0),
    }
    found = {name: model.fit(X, partial).predict_proba(X) for name, model in models.items()}
    for name, one in found.items():
        for other, scores in found.items():
            assert name == other or not np.allclose(one, scores), f"{name} and {other}"
    assert (models["cls-h"].history_["removed"] == 0).all()
    assert "removed_low" not in models["cls-l"].history_
    assert found["clc"].mean() > found["cls"].mean() > found["cls-h"].mean()


def test_entries_are_softened_where_the_objective_is_cross_entropy(data):
    X, _, partial = data

    def scores(base, action):
        return quick(base=base, tau_h=0.2, action=action).fit(X, partial).predict_proba(X)

    plain, other = lw.MLP(**QUICK), lw.MLP(**QUICK, loss="zlpr")
    np.testing.assert_array_equal(scores(plain, "auto"), scores(plain, "soften"))
    np.testing.assert_array_equal(scores(other, "auto"), scores(other, "remove"))
    with pytest.raises(InputError, match="objective of MLP does not support soft targets"):
        scores(other, "soften")


def test_the_rate_is_estimated_without_clean_labels(data):
    X, Y, partial = data
    model = quick(base=lw.MLP(**{**QUICK, "epochs": 12}), ramp=8).fit(X, partial)
    missing = ((partial == 0) & (Y == 1)).sum() / (partial == 0).sum()
    found = model.history_["tau_h"].iloc[-1]
    assert missing / 3 < found < 3 * missing


def test_hidden_positives_score_higher_than_with_an(data):
    """With half of the positives hidden, hidden ones score higher than if they were negatives."""
    X, Y, partial = data
    hidden = (Y == 1) & (partial == 0)
    assumed = lw.AssumeNegative(lw.MLP(**QUICK), random_state=0).fit(X, partial)
    selected = quick().fit(X, partial)
    assert selected.predict_proba(X)[hidden].mean() > assumed.predict_proba(X)[hidden].mean()


def test_weight_of_unannotated_entries(data):
    X, _, partial = data
    light, plain = (quick(negative_weight=w).fit(X, partial) for w in (0.1, 1))
    assert light.predict_proba(X).mean() > plain.predict_proba(X).mean() + 0.05


def test_an_objective_without_weights_of_entries(data):
    X, _, partial = data
    base = lw.make("c2ae", **{**lw.methods.get_class("c2ae")._test_params(), "epochs": 1})
    with pytest.raises(InputError, match="C2AE does not support weights of entries"):
        CLS(base=base, negative_weight=0.5, random_state=0).fit(X, partial)
    auto, one = (
        CLS(base=base, negative_weight=weight, random_state=0).fit(X, partial).predict_proba(X)
        for weight in ("auto", 1.0)
    )
    np.testing.assert_array_equal(auto, one)


def test_callbacks_are_not_copied(data):
    class Count(lw.nn.callbacks.Callback):
        epochs = 0

        def on_epoch(self, run, row):
            self.epochs += 1

    X, _, partial = data
    seen = Count()
    quick(base=lw.MLP(**QUICK, callbacks=[seen])).fit(X, partial)
    assert seen.epochs == QUICK["epochs"]


def test_validation_rows_are_partial_unless_said(data):
    X, Y, partial = data
    with pytest.raises(InputError, match="annotated in full"):
        quick(validation="clean").fit(X, partial)
    clean = quick(validation="clean", threshold="tuned")
    clean.fit(X[:120], partial[:120], validation=(X[120:], Y[120:]))
    honest = quick(threshold="tuned")
    honest.fit(X[:120], partial[:120], validation=(X[120:], partial[120:]))
    assert "val_map" in clean.history_
    assert "val_auc_macro" in honest.history_
    watched = [
        quick(monitor="map", validation=kind, tau_h=0.1)
        .fit(X[:120], partial[:120], validation=(X[120:], Y[120:]))
        .history_["val_map"]
        for kind in ("clean", "partial")
    ]
    np.testing.assert_array_equal(*watched)  # the labels given are what counts


def test_the_default_threshold_looks_at_no_label(data):
    X, _, partial = data
    other = partial.copy()
    other[120:] = 1 - other[120:]
    rules = [
        quick(tau_h=0.1, monitor="loss")
        .fit(X[:120], partial[:120], validation=(X[120:], held))
        .threshold_
        for held in (partial[120:], other[120:])
    ]
    assert rules[0].value_ == rules[1].value_


def test_without_patience_all_epochs_are_trained(data):
    X, _, partial = data
    model = quick(base=lw.MLP(**QUICK, patience=None), threshold=0.5).fit(X, partial)
    assert len(model.history_) == 6
    assert "val_auc_macro" not in model.history_


# -- odd labels ------------------------------------------------------------------------


@pytest.mark.parametrize("tau", ["tau_h", "tau_l"])
@pytest.mark.parametrize("value", [-0.1, 1.0, 1.5, "most"])
def test_rates_outside_their_range_are_refused(data, tau, value):
    with pytest.raises(ValueError, match=tau):
        quick(**{tau: value}).fit(data[0], data[2])


def test_no_positive_at_all(data):
    X, Y, _ = data
    model = quick().fit(X, np.zeros_like(Y))
    assert (model.predict_proba(X) < 0.5).all()
    assert (model.history_["tau_h"] == 0).all()


def test_all_positive(data):
    X, Y, _ = data
    model = quick().fit(X, np.ones_like(Y))
    assert (model.predict_proba(X) > 0.5).all()
    assert (model.history_["removed"] == 0).all()


def test_only_positives_are_known(data):
    """Then the unknown entries are unannotated: the same model as with zeros."""
    X, _, partial = data
    positives = np.where(partial == 1, 1.0, np.nan)
    expected = quick().fit(X[:120], partial[:120], validation=(X[120:], partial[120:]))
    found = quick().fit(X[:120], positives[:120], validation=(X[120:], positives[120:]))
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(X))


def test_unknowns_mixed_with_zeros(data):
    """By default NaN is ignored and zeros are unannotated; with "unknown" NaN is unannotated."""
    X, Y, partial = data
    checked = np.random.default_rng(1).random(Y.shape) < 0.3
    mixed = np.where(partial == 1, 1.0, np.where(checked & (Y == 0), 0.0, np.nan))
    auto = quick(tau_h=0.3).fit(X, mixed)
    zeros = quick(tau_h=0.3, unannotated="zeros").fit(X, mixed)
    unknown = quick(tau_h=0.3, unannotated="unknown").fit(X, mixed)
    np.testing.assert_array_equal(auto.predict_proba(X), zeros.predict_proba(X))
    n_nan, n_zero = np.isnan(mixed).sum(), (mixed == 0).sum()
    assert n_nan > 2 * n_zero
    share = unknown.history_["removed"].iloc[-1] / zeros.history_["removed"].iloc[-1]
    assert share == pytest.approx(n_nan / n_zero, rel=0.15)


# -- an estimator like others -----------------------------------------------------------


def test_parameters_of_the_network(data):
    model = CLS().set_params(base__epochs=3, base__hidden=(8,), tau_l=0.1)
    assert model.base.epochs == 3
    assert model.get_params()["base__hidden"] == (8,)
    assert clone(model).base is not model.base
    assert len(model.set_params(random_state=0).fit(data[0], data[2]).history_) <= 3


def test_a_base_that_is_no_network():
    X, Y = np.zeros((6, 2)), np.eye(6, 2)
    with pytest.raises(InputError, match="neural method"):
        CLS("mlknn").fit(X, Y)
    with pytest.raises(InputError, match="trains another network"):
        CLS(CLS()).fit(X, Y)
    with pytest.raises(InputError, match="no method 'mpl'"):
        CLS("mpl").fit(X, Y)


def test_export_holds_both_networks(data):
    from labelweave.export import serving_module

    X, _, partial = data
    model = quick().fit(X, partial)
    served = serving_module(model)(torch.tensor(X[:5], dtype=torch.float32))
    np.testing.assert_allclose(served.detach(), model.predict_proba(X[:5]), atol=1e-6)


def test_resume_is_exact(data, tmp_path):
    X, _, partial = data

    class Kill(lw.nn.callbacks.Callback):
        def on_step(self, run, loss):
            if run.step == 8:
                raise KeyboardInterrupt

    def model(folder, **more):
        base = lw.MLP(**QUICK, checkpoint=tmp_path / folder, checkpoint_every=0, **more)
        return quick(base=base)

    whole = model("whole").fit(X, partial)
    with pytest.raises(KeyboardInterrupt):
        model("killed", callbacks=[Kill()]).fit(X, partial)
    again = model("killed").fit(X, partial)
    np.testing.assert_array_equal(whole.predict_proba(X), again.predict_proba(X))
    columns = ["removed", "tau_h", "loss"]
    assert whole.history_[columns].equals(again.history_[columns])


def test_names_of_labels(data):
    X, _, partial = data
    model = quick().fit(X, as_labels(partial, names=["a", "b", "c", "d"]))
    assert list(model.label_names_) == ["a", "b", "c", "d"]


def test_a_checkpoint_of_other_settings_is_refused(data, tmp_path):
    """A checkpoint must agree with the parameters of CLS, not only with those of its network."""
    X, _, partial = data
    base = lw.MLP(**QUICK, checkpoint=tmp_path, checkpoint_every=0)
    quick(base=base, tau_l=0.1).fit(X, partial)
    with pytest.raises(lw.exceptions.LabelweaveError, match="checkpoint"):
        quick(base=base, tau_l=0.2).fit(X, partial)


def test_known_negatives_are_not_counted_as_unannotated_in_the_estimate(data):
    X, Y, partial = data
    checked = (Y == 0) & (np.random.default_rng(0).random(Y.shape) < 0.7)
    mixed = np.where(partial == 1, 1.0, np.where(checked, 0.0, np.nan))
    base = lw.MLP(**{**QUICK, "epochs": 12})
    doubted = quick(base=base, ramp=8, unannotated="unknown").fit(X, mixed)
    all_blank = quick(base=base, ramp=8).fit(X, partial)
    rates = [model.history_["tau_h"].iloc[-1] for model in (doubted, all_blank)]
    assert rates[0] > rates[1]

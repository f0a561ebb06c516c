"""CLS: the algorithm against loops written from the paper, and the estimator around it."""

import numpy as np
import pytest
import torch
from sklearn.base import clone

import labelweave as lw
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.nn.batches import Batch
from labelweave.nn.losses import bce
from labelweave.nn.task import StepInfo, SupervisedTask, make_plan
from labelweave.partial._selection.peer_networks import PeerNetwork, PeerTask, peers_of
from labelweave.partial._selection.selection_rules import MiniBatch
from labelweave.partial.cls import CLS, CoLabelSelectionRule, co_label_selection

QUICK = {"hidden": (16,), "epochs": 6, "lr": 2e-2}  # with early stopping
FIXED = {**QUICK, "patience": None}  # as by default: a run of fixed length


def quick(**changes):
    settings = {"base": lw.MLP(**FIXED), "random_state": 0, "ramp": 3}
    return CLS(**(settings | changes))


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
    return set(true_f), set(informative_f), set(true_g), set(informative_g)


@pytest.mark.parametrize("keep_high", [0.0, 0.7, 0.99, 1.0])
@pytest.mark.parametrize("keep_low", [0.0, 0.6, 0.98, 1.0])
@pytest.mark.parametrize("shape", [(6, 5), (60, 40)])
def test_co_label_selection_is_algorithm_1(keep_high, keep_low, shape):
    rng = np.random.default_rng(0)
    losses_f, losses_g = rng.random((2, *shape))
    candidates = rng.random(shape) < 0.8
    negatives = co_label_selection(losses_f, losses_g, candidates, keep_high, keep_low)
    expected = slow_algorithm(losses_f, losses_g, candidates, keep_high, keep_low)
    for selected, labels in zip((mask for of in negatives for mask in of), expected, strict=True):
        assert {tuple(label) for label in np.argwhere(selected).tolist()} == labels


@pytest.mark.parametrize("action", ["remove", "correct"])
def test_the_rule_of_the_estimator_is_the_same_selection(action):
    """Positives stay, and the selected candidates are learnt as negatives (Eq. 5 and 6)."""
    rng = np.random.default_rng(1)
    f, g = rng.normal(size=(2, 16, 9)).astype(np.float32)
    targets = (rng.random((16, 9)) < 0.2).astype(np.float32)
    candidates = targets == 0
    batch = MiniBatch([f, g], targets, [candidates] * 2, np.arange(16), 0.1, 0.3)
    losses = [np.log1p(np.exp(z)) for z in (f, g)]
    true_f, kept_f, true_g, kept_g = slow_algorithm(*losses, candidates, 1 - 0.1, 1 - 0.3)
    for selection, true, kept in zip(
        CoLabelSelectionRule(action).select(batch), (true_f, true_g), (kept_f, kept_g), strict=True
    ):
        assert selection.n_low == len(true) - len(kept)
        for i, j in np.ndindex(16, 9):
            value = selection.targets[i, j]
            if not candidates[i, j]:
                assert value == 1
            elif (i, j) in true:
                assert value == 0 if (i, j) in kept else np.isnan(value)
            else:
                assert value == 1 if action == "correct" else np.isnan(value)
                assert i * 9 + j in selection.removed


def test_the_loss_is_that_of_the_paper():
    """Eq. 7 and 8: the sum over the labels learnt from, over the number of rows."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(8, 4, generator=generator)
    y = (torch.rand(8, 5, generator=generator) < 0.3).float()
    networks = [torch.nn.Linear(4, 5) for _ in range(2)]
    tasks = [SupervisedTask(one, bce, {}, name="bce") for one in networks]
    rates = {"tau_h": 0.3, "tau_l": 0.2, "ramp": 1}
    task = PeerTask(PeerNetwork(networks), tasks, CoLabelSelectionRule(), loss_scale=5, **rates)
    total = task.losses(Batch(x, y, torch.arange(8)), StepInfo(5, 0, 0.0))["bce"].item()
    p_f, p_g = (torch.sigmoid(one(x)).detach().double().numpy() for one in networks)
    negative = y.numpy() == 0
    _, kept_f, _, kept_g = slow_algorithm(-np.log(1 - p_f), -np.log(1 - p_g), negative, 0.7, 0.8)
    expected = 0.0
    for p, kept in ((p_f, kept_f), (p_g, kept_g)):
        for i, j in np.ndindex(8, 5):
            if y[i, j] == 1:
                expected -= np.log(p[i, j]) / 8
            elif (i, j) in kept:
                expected -= np.log(1 - p[i, j]) / 8
    assert total == pytest.approx(expected, rel=1e-5)


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
    probabilities = model.predict_proba(X[120:])
    assert probabilities.shape == (120, 4)
    assert probabilities[Y[120:] == 1].mean() > probabilities[Y[120:] == 0].mean()
    assert "removed" in model.history_


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
    assert history["removed"].iloc[-1] == pytest.approx(0.2 * (partial == 0).sum(), rel=0.05)
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
        "clc": quick(tau_h=0.2, tau_l=0.2, action="correct"),
        "neither": quick(tau_h=0, tau_l=0),
    }
    probabilities = {name: model.fit(X, partial).predict_proba(X) for name, model in models.items()}
    for name, one in probabilities.items():
        for other, scores in probabilities.items():
            assert name == other or not np.allclose(one, scores), f"{name} and {other}"
    assert (models["cls-h"].history_["removed"] == 0).all()
    assert "removed_low" not in models["cls-l"].history_
    assert probabilities["clc"].mean() > probabilities["cls"].mean() > probabilities["cls-h"].mean()


def test_the_rate_is_estimated_without_clean_labels(data):
    X, Y, partial = data
    model = quick(base=lw.MLP(**{**FIXED, "epochs": 12})).fit(X, partial)
    missing = ((partial == 0) & (Y == 1)).sum() / (partial == 0).sum()
    assert missing / 3 < model.tau_h_ < 3 * missing


def test_the_estimate_is_all_that_auto_adds(data):
    """The network that it needs leaves no trace in the two networks, nor in their history."""
    X, _, partial = data
    auto = quick().fit(X, partial)
    fixed = quick(tau_h=auto.tau_h_).fit(X, partial)
    np.testing.assert_array_equal(auto.predict_proba(X), fixed.predict_proba(X))
    assert list(auto.history_.columns) == list(fixed.history_.columns)
    assert len(auto.history_) == FIXED["epochs"]


def test_the_rate_is_saved(data, tmp_path):
    X, _, partial = data
    model = quick().fit(X, partial)
    model.save(tmp_path / "model")
    assert lw.load(tmp_path / "model").tau_h_ == model.tau_h_


def test_no_rows_are_held_out_from_the_networks(data):
    """Both learn from all rows, the logits are not shifted, the threshold is the paper's."""
    X, _, partial = data
    model = quick(tau_h=0.5, tau_l=0.0, ramp=0).fit(X, partial)
    half = 0.5 * (partial == 0).sum()  # of all rows
    np.testing.assert_allclose(model.history_["removed"], half, rtol=0.02)
    assert float(model.network_.shift) == 0
    assert model.threshold_.value == 0.5
    assert not capabilities(model).out_of_fold


# "Implementation Details" of the paper: tau_h with 75, 50, 25 % of the positives and a single one.
PAPER = {
    "pascal-voc-2007": ([0.002, 0.003, 0.005, 0.005], 0.02),
    "ms-coco": ([0.005, 0.010, 0.012, 0.012], 0.06),
    "nus-wide": ([0.006, 0.012, 0.020, 0.020], 0.06),
}


@pytest.mark.parametrize("dataset", PAPER)
def test_published_settings_of_cls(dataset):
    tau_h, tau_l = PAPER[dataset]
    for annotated, rate in zip(("75%", "50%", "25%", "single"), tau_h, strict=True):
        model = CLS.published(dataset, annotated=annotated)
        assert (model.tau_h, model.tau_l, model.ramp) == (rate, tau_l, 10)
        assert model.action == "remove"
    assert CLS.published(dataset).tau_h == "auto"


@pytest.mark.parametrize("id", ["cls", "co-teaching", "co-teaching+", "jocor", "wan", "role"])
def test_published_training_of_all_methods_of_table_2(id):
    cls = lw.methods.get_class(id)
    base = cls.published("ms-coco").base
    assert (base.encoder.depth, base.encoder.size) == (50, 224)
    assert (base.epochs, base.batch_size, base.lr, base.weight_decay) == (100, 120, 4e-5, 1e-4)
    assert (base.optimizer, base.patience) == ("adam", None)
    other = cls.published("scene").base
    assert other.encoder is None
    assert (other.epochs, other.batch_size, other.weight_decay) == (100, 120, 1e-4)
    assert other.optimizer == "adam"


def test_the_learning_rate_falls_from_its_initial_value_to_0_by_a_cosine():
    """ "An initial learning rate of 4e-5, decreased to 0 using cosine decay": no warm-up."""
    options = CLS.published("ms-coco").base.network_spec().settings.optimizer_options()
    plan = make_plan([torch.nn.Parameter(torch.zeros(1))], n_steps=1000, **options)
    for step in range(1000):
        expected = 4e-5 * (1 + np.cos(np.pi * step / 1000)) / 2
        assert plan.optimizer.param_groups[0]["lr"] == pytest.approx(expected, abs=1e-7)
        plan.optimizer.step()
        plan.scheduler.step()


def test_the_defaults_are_the_published_settings():
    default, published = CLS(), CLS.published()
    assert default.default_part("base").get_params() == published.base.get_params()
    assert default.get_params(deep=False) == {**published.get_params(deep=False), "base": "mlp"}


def test_hidden_positives_score_higher_than_with_an(data):
    """With half of the positives hidden, hidden ones score higher than if they were negatives."""
    X, Y, partial = data
    hidden = (Y == 1) & (partial == 0)
    assumed = lw.AssumeNegative(lw.MLP(**QUICK), random_state=0).fit(X, partial)
    selected = quick().fit(X, partial)
    assert selected.predict_proba(X)[hidden].mean() > assumed.predict_proba(X)[hidden].mean()


def test_callbacks_are_not_copied(data):
    class Count(lw.nn.callbacks.Callback):
        epochs = 0

        def on_epoch(self, run, row):
            self.epochs += 1

    X, _, partial = data
    seen = Count()
    quick(base=lw.MLP(**FIXED, callbacks=[seen])).fit(X, partial)
    assert seen.epochs == QUICK["epochs"]


def early(**changes):
    """CLS with a base that stops early, and the threshold of the other methods."""
    return quick(base=lw.MLP(**QUICK), threshold="cardinality", **changes)


def test_validation_rows_are_partial_unless_said(data):
    X, Y, partial = data
    with pytest.raises(InputError, match="annotated in full"):
        early(validation="clean").fit(X, partial)
    clean = early(validation="clean").set_params(threshold="tuned")
    clean.fit(X[:120], partial[:120], validation=(X[120:], Y[120:]))
    honest = early().set_params(threshold="tuned")
    honest.fit(X[:120], partial[:120], validation=(X[120:], partial[120:]))
    assert "val_map" in clean.history_
    assert "val_auc_macro" in honest.history_
    watched = [
        early(monitor="map", validation=kind, tau_h=0.1)
        .fit(X[:120], partial[:120], validation=(X[120:], Y[120:]))
        .history_["val_map"]
        for kind in ("clean", "partial")
    ]
    np.testing.assert_array_equal(*watched)  # the labels given are what counts


def test_the_threshold_by_cardinality_looks_at_no_label(data):
    X, _, partial = data
    other = partial.copy()
    other[120:] = 1 - other[120:]
    rules = [
        early(tau_h=0.1, monitor="loss")
        .fit(X[:120], partial[:120], validation=(X[120:], held))
        .threshold_
        for held in (partial[120:], other[120:])
    ]
    assert rules[0].value_ == rules[1].value_


def test_without_patience_all_epochs_are_trained(data):
    X, _, partial = data
    model = quick(tau_h=0.1).fit(X, partial)
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
    assert model.tau_h_ == 0


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
    model = quick().fit(X[:120], positives[:120], validation=(X[120:], positives[120:]))
    np.testing.assert_array_equal(model.predict_proba(X), expected.predict_proba(X))


def test_unknowns_mixed_with_zeros(data):
    """By default NaN is unannotated and zeros are known; with "zeros" NaN is ignored."""
    X, Y, partial = data
    checked = np.random.default_rng(1).random(Y.shape) < 0.3
    mixed = np.where(partial == 1, 1.0, np.where(checked & (Y == 0), 0.0, np.nan))
    auto = quick(tau_h=0.3).fit(X, mixed)
    zeros = quick(tau_h=0.3, unannotated="zeros").fit(X, mixed)
    unknown = quick(tau_h=0.3, unannotated="unknown").fit(X, mixed)
    np.testing.assert_array_equal(auto.predict_proba(X), unknown.predict_proba(X))
    assert (auto.unannotated_, zeros.unannotated_) == ("unknown", "zeros")
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
        base = lw.MLP(**FIXED, checkpoint=tmp_path / folder, checkpoint_every=0, **more)
        return quick(base=base)

    uninterrupted = model("whole").fit(X, partial)
    with pytest.raises(KeyboardInterrupt):
        model("killed", callbacks=[Kill()]).fit(X, partial)
    again = model("killed").fit(X, partial)
    np.testing.assert_array_equal(uninterrupted.predict_proba(X), again.predict_proba(X))
    columns = ["removed", "loss"]
    assert uninterrupted.history_[columns].equals(again.history_[columns])


def test_names_of_labels(data):
    X, _, partial = data
    model = quick().fit(X, as_labels(partial, names=["a", "b", "c", "d"]))
    assert list(model.label_names_) == ["a", "b", "c", "d"]


def test_a_checkpoint_of_other_settings_is_refused(data, tmp_path):
    """A checkpoint must agree with the parameters of CLS, not only with those of its network."""
    X, _, partial = data
    base = lw.MLP(**FIXED, checkpoint=tmp_path, checkpoint_every=0)
    quick(base=base, tau_l=0.1).fit(X, partial)
    with pytest.raises(lw.exceptions.LabelweaveError, match="checkpoint"):
        quick(base=base, tau_l=0.2).fit(X, partial)


def test_known_negatives_are_not_counted_as_unannotated_in_the_estimate(data):
    X, Y, partial = data
    checked = (Y == 0) & (np.random.default_rng(0).random(Y.shape) < 0.7)
    mixed = np.where(partial == 1, 1.0, np.where(checked, 0.0, np.nan))
    base = lw.MLP(**{**FIXED, "epochs": 12})
    doubted = quick(base=base, unannotated="unknown").fit(X, mixed)
    all_blank = quick(base=base).fit(X, partial)
    assert doubted.tau_h_ > all_blank.tau_h_


def test_training_is_algorithm_1(data):
    """All epochs of Algorithm 1 in plain torch, from the same weights, one mini-batch per epoch."""
    X, _, partial = (array[:40] for array in data)
    n_epochs, tau_h, tau_l, e_k = 6, 0.3, 0.2, 3
    settings = {
        "hidden": (), "batch_size": 40, "optimizer": "adam", "weight_decay": 0.05,
        "patience": None, "scale": "none",
    }  # fmt: skip

    def trained(epochs, lr):
        base = lw.MLP(**settings, epochs=epochs, lr=lr)
        model = CLS(base, tau_h=tau_h, tau_l=tau_l, ramp=e_k, random_state=0).fit(X, partial)
        return peers_of(model.network_)

    f, g = trained(1, 1e-12)  # the initial weights
    optimizers = [torch.optim.Adam(one.parameters(), lr=0.05, weight_decay=0.05) for one in (f, g)]
    x, y = torch.tensor(X, dtype=torch.float32), torch.tensor(partial)
    r_h = r_l = 1.0
    for e in range(1, n_epochs + 1):
        p_f, p_g = torch.sigmoid(f(x)), torch.sigmoid(g(x))  # line 5
        losses = [-torch.log(1 - p).detach().numpy() for p in (p_f, p_g)]
        _, kept_f, _, kept_g = slow_algorithm(*losses, partial == 0, r_h, r_l)  # lines 6 and 7
        for p, kept, optimizer in ((p_f, kept_f, optimizers[0]), (p_g, kept_g, optimizers[1])):
            loss = -torch.log(p[y == 1]).sum()  # lines 8 and 9
            for i, j in kept:
                loss = loss - torch.log(1 - p[i, j])
            optimizer.zero_grad()
            (loss / 40).backward()
            optimizer.step()  # line 10
        r_l, r_h = 1 - min(e / e_k * tau_l, tau_l), 1 - min(e / e_k * tau_h, tau_h)  # line 12
    for one, expected in zip(trained(n_epochs, 0.05), (f, g), strict=True):
        for weights, slow in zip(one.parameters(), expected.parameters(), strict=True):
            torch.testing.assert_close(weights, slow, atol=1e-4, rtol=1e-4)

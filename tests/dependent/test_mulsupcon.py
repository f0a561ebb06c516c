"""MulSupCon as an estimator: stages, resume, transfer, kinds of positives, many labels."""

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from labelweave.data.splits import stratified_holdout
from labelweave.dependent.mulsupcon import MulSupCon
from labelweave.exceptions import InputError
from labelweave.metrics import f1_example, get_metric
from labelweave.nn.augment import make_augment
from labelweave.nn.callbacks import Callback
from labelweave.nn.encoders import MLPEncoder


def quick(**changes):
    settings = {
        "hidden": (32,),
        "norm": None,
        "dropout": 0.2,
        "projection": 16,
        "queue_size": 64,
        "pretrain_epochs": 5,
        "pretrain_steps": 5,
        "epochs": 8,
        "min_steps": 1,
        "lr": 1e-2,
        "backbone_lr": 1e-3,
        "monitor": "map",
        "random_state": 0,
    }
    return MulSupCon(**(settings | changes))


def encoder_weights(model):
    return list(model.network_.encoder.state_dict().values())  # averages of batch norm too


@pytest.mark.parametrize(
    "kind",
    [{"positives": "all"}, {"positives": "any"}, {"weighted": True}, {"mode": "linear-probe"}],
)
def test_every_kind_learns(data, kind):
    X, Y = data
    model = quick(threshold="tuned", epochs=15, **kind).fit(X[:200], Y[:200])
    assert f1_example(Y[200:], model.predict(X[200:])) > 0.6
    assert list(model.history_["stage"].unique()) == ["pretraining", model.mode]


def test_pretraining_brings_rows_with_common_labels_together():
    """By the share of common labels among the nearest rows; most features say nothing."""
    rng = np.random.default_rng(0)
    Y = rng.integers(0, 2, (200, 4))
    X = np.hstack([Y + 0.3 * rng.normal(size=Y.shape), rng.normal(size=(200, 20))])

    def common(model):
        z = model.transform(X)
        z = z / np.linalg.norm(z, axis=1, keepdims=True)
        nearest = np.argsort(-(z @ z.T), axis=1)[:, 1:6]
        return (Y[:, None] * Y[nearest]).sum() / Y.sum() / 5

    probe = {"mode": "linear-probe", "epochs": 1, "patience": None}
    free = {"mask": 0.0, "dropout": 0.0, "momentum": 0.9}
    trained = quick(pretrain_steps=100, pretrain_lr=4e-3, **free, **probe).fit(X, Y)
    untrained = quick(pretrain_epochs=0, **probe).fit(X, Y)
    assert common(trained) > common(untrained) + 0.1
    assert "stage" not in untrained.history_


def test_a_linear_probe_leaves_the_encoder_alone(data):
    settings = {"norm": "batch", "patience": None}
    first, second = (quick(mode="linear-probe", epochs=k, **settings).fit(*data) for k in (1, 4))
    tuned = quick(epochs=4, **settings).fit(*data)
    for one, other in zip(encoder_weights(first), encoder_weights(second), strict=True):
        assert torch.equal(one, other)
    moved = zip(encoder_weights(first), encoder_weights(tuned), strict=True)
    assert not any(torch.equal(one, other) for one, other in moved)
    assert not torch.equal(first.network_.head.weight, second.network_.head.weight)


def test_fine_tuning_can_begin_with_the_linear_layer_alone(data):
    X, Y = data
    rates = {"lr": 1e-9, "backbone_lr": 1e-9, "epochs": 1}  # hardly a change in fine-tuning
    cold = quick(**rates).fit(X, Y)
    warm = quick(**rates, probe_epochs=20).fit(X, Y)
    assert list(warm.history_["stage"].unique()) == ["pretraining", "linear-probe", "finetune"]
    for before, after in zip(encoder_weights(cold), encoder_weights(warm), strict=True):
        assert torch.allclose(before, after, atol=1e-6)  # the probe left the encoder alone
    score = get_metric("map")
    scores = [score(Y, Y_score=model.predict_proba(X)) for model in (cold, warm)]
    assert scores[1] > scores[0] + 0.1


def test_the_two_learning_rates():
    model = quick()
    network = model._build_network(20, 5)
    (plan,) = model._build_task(network, None).optimizers(10)
    assert [group["lr"] for group in plan.optimizer.param_groups] == [1e-2, 1e-3]
    assert plan.every == "plateau"
    assert plan.scheduler.patience == 2


@pytest.mark.parametrize(("mode", "rates"), [("finetune", [4e-4, 4e-5]), ("linear-probe", [1e-2])])
def test_the_default_rates_are_those_of_the_paper(mode, rates):
    model = MulSupCon(mode=mode)
    (plan,) = model._build_task(model._build_network(20, 5), None).optimizers(10)
    assert [group["lr"] for group in plan.optimizer.param_groups] == rates
    assert type(plan.optimizer) is torch.optim.Adam


# The settings of the program for vectors.
PROGRAM = {
    "hidden": (256, 512, 256),
    "norm": None,
    "dropout": 0.2,
    "projection": 256,
    "momentum": 0.999,
    "queue_size": 256,
    "temperature": 0.1,
    "mask": 0.5,
    "pretrain_epochs": 150,
    "pretrain_steps": 1000,
    "pretrain_batch_size": 64,
    "pretrain_optimizer": "adam",
    "pretrain_lr": 4e-4,
    "pretrain_weight_decay": 1e-5,
    "pretrain_schedule": "cosine-restarts",
    "epochs": 30,
    "batch_size": 32,
    "min_steps": 50,
    "optimizer": "adam",
    "backbone_lr": 4e-5,
    "weight_decay": 0.0,
    "schedule": "plateau",
    "monitor": "val_loss",
    "patience": 20,
    "mode": "finetune",
    "positives": "each-label",
    "weighted": False,
}
# "Settings" of the paper, where it says more or something else.
TEXT = {"pretrain_steps": None, "pretrain_schedule": "cosine"}
IMAGES = {
    "pretrain_epochs": 400,
    "pretrain_steps": None,
    "pretrain_optimizer": "sgd",
    "pretrain_lr": 0.1,
    "pretrain_schedule": "cosine",
    "queue_size": 2048,
    "optimizer": "adam",
    "lr": 1e-4,
    "backbone_lr": 1e-4,
    "schedule": "plateau",
    "mode": "finetune",
}


def chosen(model, names):
    return {name: model.get_params(deep=False)[name] for name in names}


def test_published_settings():
    for name in (None, "yeast", "delicious"):
        assert chosen(MulSupCon.published(name), PROGRAM) == PROGRAM
    assert chosen(MulSupCon(), PROGRAM) == PROGRAM
    for name, size in (("yeast", 32), ("scene", 32), ("delicious", 256), (None, 256)):
        text = MulSupCon.published(name, source="text")
        assert chosen(text, PROGRAM) == PROGRAM | TEXT | {
            "pretrain_batch_size": size, "batch_size": size, "min_steps": 1
        }  # fmt: skip
    for name, size in (("ms-coco", 64), ("objects365", 128), ("mirflickr", 64)):
        model = MulSupCon.published(name)
        assert chosen(model, IMAGES) == IMAGES
        assert (model.pretrain_batch_size, model.batch_size) == (size, size)
        assert (model.encoder.depth, model.encoder.size, model.encoder.weights) == (50, 224, None)
        settings = make_augment(model.encoder.augment).settings
        assert (settings.crop, settings.ratio, settings.flip) == (0.08, 4 / 3, 0.5)
        jitter = (settings.brightness, settings.contrast, settings.saturation, settings.hue)
        assert (jitter, settings.jitter) == ((0.4, 0.4, 0.4, 0.1), 0.8)
        assert (settings.grey, settings.blur) == (0.2, 0.0)
    with pytest.raises(InputError, match="'program' or 'text'"):
        MulSupCon.published(source="book")


def test_published_has_the_kinds_of_training_of_the_tables():
    """Tables 5 to 8: probes at .01, probes of another set at .04, and 400 epochs of SGD at .1."""
    probe = {"mode": "linear-probe", "lr": 0.01}
    scratch = {"pretrain_epochs": 0, "optimizer": "sgd", "lr": 0.1, "backbone_lr": 0.1}
    scratch |= {"schedule": "cosine", "epochs": 400}
    for name in ("scene", "ms-coco"):
        for form, changed in {
            "linear-probe": probe,
            "transferred": probe | {"lr": 0.04},
            "from-scratch": scratch,
        }.items():
            model = MulSupCon.published(name, form=form)
            names = set(model.get_params(deep=False)) - {"encoder", "schedule_params", "patience"}
            expected = chosen(MulSupCon.published(name), names) | changed
            assert chosen(model, names) == expected
    with pytest.raises(InputError, match="'linear-probe'"):
        MulSupCon.published(form="probed")


def test_the_pretraining_of_images_is_sgd_on_a_cosine():
    model = quick(pretrain_optimizer="sgd", pretrain_lr=0.1, pretrain_schedule="cosine")
    task = model._contrastive_task(model._build_network(20, 5), 5)
    (plan,) = task.optimizers(100)
    assert type(plan.optimizer) is torch.optim.SGD
    rates = []
    for _ in range(100):
        rates.append(plan.optimizer.param_groups[0]["lr"])
        plan.optimizer.step()
        plan.scheduler.step()
    cosine = [0.05 * (1 + np.cos(np.pi * max(step - 1, 0) / 99)) for step in range(100)]
    np.testing.assert_allclose(rates, cosine, atol=1e-6)


def test_the_pretraining_keeps_its_best_epoch(data):
    model = quick(pretrain_lr=0.05, pretrain_epochs=8, pretrain_steps=10, epochs=1).fit(*data)
    stages = model.history_.query("stage == 'pretraining'")["loss"].to_numpy()
    assert stages.argmin() < len(stages) - 1  # so that the last epoch is not the best
    last = quick(pretrain_lr=0.05, pretrain_epochs=int(stages.argmin()) + 1, pretrain_steps=10,
                 mode="linear-probe", epochs=1).fit(*data)  # fmt: skip
    probe = quick(pretrain_lr=0.05, pretrain_epochs=8, pretrain_steps=10,
                  mode="linear-probe", epochs=1).fit(*data)  # fmt: skip
    for one, other in zip(encoder_weights(last), encoder_weights(probe), strict=True):
        assert torch.equal(one, other)


def test_the_rate_of_a_short_pretraining_can_fall_to_zero(data):
    for schedule, share in (("cosine-restarts", 0.9), ("cosine", 0.0)):
        model = quick(pretrain_schedule=schedule, pretrain_lr=1e-3, epochs=1).fit(*data)
        rates = model.history_.query("stage == 'pretraining'")["lr"]
        assert rates.iloc[-1] == pytest.approx(share * 1e-3, abs=1e-4)
    with pytest.raises(ValueError, match="pretrain_schedule"):  # there is no value to watch
        quick(pretrain_schedule="plateau").fit(*data)


class _Stop(Callback):
    """Breaks off a run at a step, counted over all stages."""

    def __init__(self, at):
        self.left = at

    def on_step(self, run, loss):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("at", [7, 25, 26, 31])  # within and on both sides of the boundary
def test_a_broken_run_goes_on_exactly(data, tmp_path, at):
    """25 steps of pretraining come first."""
    X, Y = data
    settings = {"checkpoint_every": 0, "batch_size": 64, "epochs": 3, "patience": None}
    uninterrupted = quick(**settings).fit(X, Y)
    with pytest.raises(KeyboardInterrupt):
        quick(checkpoint=tmp_path, callbacks=[_Stop(at)], **settings).fit(X, Y)
    again = quick(checkpoint=tmp_path, **settings).fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), uninterrupted.predict_proba(X))
    drop = ["seconds"]
    assert again.history_.drop(columns=drop).equals(uninterrupted.history_.drop(columns=drop))


def test_transfer_to_other_labels(data, tmp_path):
    X, Y = data
    source = quick().fit(X[:150], Y[:150, :3])
    source.save(tmp_path / "source")
    probe = {"mode": "linear-probe", "epochs": 2}
    for pretrained in (source, tmp_path / "source", str(tmp_path / "source")):
        model = quick(pretrained=pretrained, **probe).fit(X[150:] * 3, Y[150:, 2:])
        for one, other in zip(encoder_weights(model), encoder_weights(source), strict=True):
            assert torch.equal(one, other)
        np.testing.assert_array_equal(model.transform(X), source.transform(X))
        assert "stage" not in model.history_
    assert model.predict_proba(X).shape == (300, 3)
    tuned = quick(pretrained=source, threshold="tuned").fit(X[:200], Y[:200])
    assert f1_example(Y[200:], tuned.predict(X[200:])) > 0.6
    tuned.save(tmp_path / "tuned")
    again = lw.load(tmp_path / "tuned")
    np.testing.assert_array_equal(again.predict_proba(X), tuned.predict_proba(X))


def test_a_clone_keeps_the_pretrained_encoder(data):
    X, Y = data
    source = quick().fit(X, Y)
    copy = clone(quick(pretrained=source))
    assert copy.pretrained is source
    copy.fit(X, Y)


def test_refused_transfers(data):
    X, Y = data
    source = quick().fit(X, Y)
    with pytest.raises(
        InputError, match="X has 19 features, but the pretrained encoder was fitted to 20"
    ):
        quick(pretrained=source).fit(X[:, 1:], Y)
    with pytest.raises(InputError, match="other layers"):
        quick(pretrained=source, hidden=(16,)).fit(X, Y)
    with pytest.raises(InputError, match="must be a MulSupCon, not MLP"):
        quick(pretrained=lw.make("mlp", hidden=(32,), epochs=1).fit(X, Y)).fit(X, Y)


def test_an_encoder_of_ones_own(data):
    def make(n_features):
        return MLPEncoder(n_features, (24,), activation="gelu", norm="layer")

    model = quick(encoder=make).fit(*data)
    assert model.transform(data[0]).shape == (300, 24)
    with pytest.raises(InputError, match="n_out"):
        quick(encoder=lambda n_features: torch.nn.Linear(n_features, 3)).fit(*data)


def test_class_similarity_is_that_of_a_loop(data):
    X, Y = data
    model = quick().fit(X, Y)
    Y = Y.copy()
    Y[Y.sum(axis=1) == 1, 3] = 0  # the label 3 never stands alone
    z = model.transform(X).astype(float)
    means = {}
    for j in (0, 1, 2, 4):
        rows = [i for i in range(len(Y)) if Y[i, j] == 1 and Y[i].sum() == 1]
        means[j] = sum(z[i] for i in rows) / len(rows)
    table = model.class_similarity(X, Y)
    assert list(table.index) == list(table.columns) == [model.label_names_[j] for j in means]
    for row, a in enumerate(means.values()):
        exps = [np.exp(a @ b / np.sqrt(a @ a) / np.sqrt(b @ b)) for b in means.values()]
        np.testing.assert_allclose(table.iloc[row], np.array(exps) / sum(exps), rtol=1e-5)


def test_transform_names_its_columns(data):
    X, Y = data
    model = quick().fit(X, Y)
    assert model.transform(X).dtype == np.float32
    assert list(model.get_feature_names_out()[:2]) == ["mulsupcon0", "mulsupcon1"]
    framed = make_pipeline(StandardScaler(), quick()).set_output(transform="pandas").fit(X, Y)
    assert framed.transform(X).shape == (300, 32)


@pytest.mark.data
def test_pretraining_helps_on_scene(data_home):
    """All else being equal, on rows held out of the training part.

    Measured: .015 to .020 of mAP, with a second stage as short as the paper's. Whether it beats
    a network trained for as long as it likes is a question for the benchmark.
    """
    train, _ = lw.load_dataset("scene").split()
    rest, held = (train[rows] for rows in stratified_holdout(train.Y, 0.4, random_state=0))
    reached = []
    for epochs in (0, 30):
        steps = {"pretrain_epochs": epochs, "pretrain_steps": 20, "min_steps": 1}
        model = MulSupCon((256,), random_state=0, **steps).fit(rest.X, rest.Y)
        reached.append(get_metric("map")(held.Y, Y_score=model.predict_proba(held.X)))
    assert reached[1] > reached[0] + 0.005

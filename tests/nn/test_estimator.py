"""The base of the neural estimators, on small methods of its own."""

import numpy as np
import pytest
import torch
from torch import nn

from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.metrics import mean_average_precision
from labelweave.nn.callbacks import Callback
from labelweave.nn.estimator import NeuralClassifier
from labelweave.nn.losses import bce, mean_loss
from labelweave.nn.task import Task, make_plan


class Linear(NeuralClassifier):
    """The least that a method writes."""

    def __init__(
        self,
        bias=True,
        *,
        epochs=7,
        batch_size=64,
        lr=1e-3,
        min_steps=1,
        monitor="val_loss",
        patience=10,
        checkpoint=None,
        callbacks=None,
        threshold=0.5,
        validation_fraction=0.2,
        random_state=None,
    ):
        super().__init__(
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            min_steps=min_steps,
            monitor=monitor,
            patience=patience,
            checkpoint=checkpoint,
            callbacks=callbacks,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.bias = bias

    def _build_network(self, n_features, n_labels):
        return nn.Linear(n_features, n_labels, bias=self.bias)


class FreeLabels(Task):
    """Free logits for each training row, found by the row numbers of the batch."""

    def __init__(self, network, n_rows, n_labels):
        super().__init__(network)
        self.free = nn.Parameter(torch.zeros(n_rows, n_labels))

    def losses(self, batch, info):
        free = torch.sigmoid(self.free[batch.rows])
        return {
            "free": mean_loss(bce(self.free[batch.rows], batch.y)),
            "match": mean_loss(bce(self.network(batch.x), free)),
        }

    def optimizers(self, n_steps):
        return [
            make_plan(self.network.parameters(), n_steps=n_steps, lr=0.05),
            make_plan([self.free], n_steps=n_steps, lr=0.5),
        ]


class TwoStages(Linear):
    def _learn(self, network, session):
        first = FreeLabels(network, len(session.Y), session.Y.n_labels)
        session.train(first, stage="free", epochs=4, monitor="loss", patience=None)
        self.free_ = first.free.detach()
        super()._learn(network, session)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    return X, (X[:, :3] > 0).astype(int)


def test_parameters_are_those_of_the_constructor():
    model = Linear(False, lr=0.5)
    assert model.get_params()["lr"] == 0.5
    assert model.get_params()["epochs"] == 7
    assert model.get_params()["bias"] is False
    assert list(model.get_params()) == sorted(model.get_params())
    assert repr(model) == "Linear(bias=False, lr=0.5)"
    with pytest.raises(TypeError, match="learning_rate"):
        Linear(learning_rate=1)


def test_stages_share_one_history(data, tmp_path):
    model = TwoStages(patience=None, random_state=0).fit(*data)
    assert model.history_["stage"].tolist() == ["free"] * 4 + ["training"] * 7
    assert model.history_["match"].notna().sum() == 4
    Y = torch.from_numpy(data[1])
    assert ((model.free_ > 0) == (Y > 0)).all()
    kept = TwoStages(patience=None, random_state=0, checkpoint=tmp_path).fit(*data)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["free.ckpt", "training.ckpt"]
    np.testing.assert_array_equal(kept.predict_proba(data[0]), model.predict_proba(data[0]))


def test_a_stage_knows_its_settings(data):
    class Wrong(Linear):
        def _learn(self, network, session):
            session.train(self._build_task(network, session), epoch=3)

    with pytest.raises(TypeError, match="no setting epoch"):
        Wrong().fit(*data)


def test_global_generators_are_untouched(data):
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    threads = torch.get_num_threads()
    model = Linear(epochs=2, random_state=0).fit(*data)
    model.predict_proba(data[0])
    model._set_state(model._state())
    assert (torch.get_rng_state() == before[0]).all()
    assert (np.random.get_state()[1] == before[1]).all()  # noqa: NPY002
    assert torch.get_num_threads() == threads


def test_the_seed_alone_decides(data):
    def scores(seed):
        return Linear(epochs=2, random_state=seed).fit(*data).predict_proba(data[0])

    torch.manual_seed(1)
    first = scores(0)
    torch.manual_seed(2)
    np.testing.assert_array_equal(first, scores(0))
    assert (first != scores(1)).any()


@pytest.mark.parametrize(
    "monitor", ["map", "f1_example", "hamming_loss", "precision@2", "val_loss"]
)
def test_what_is_monitored(data, monitor):
    model = Linear(epochs=4, monitor=monitor, random_state=0).fit(*data)
    column = monitor if monitor == "val_loss" else f"val_{monitor}"
    values = model.history_[column]
    best = values.min() if "loss" in monitor else values.max()
    assert model.best_epoch_ == (values == best).to_numpy().nonzero()[0][-1] + 1


def test_a_tuned_threshold_is_used_for_what_is_monitored(data):
    model = Linear(epochs=3, monitor="f1_micro", threshold="tuned:f1_micro", random_state=0)
    model.fit(*data)
    fixed = Linear(epochs=3, monitor="f1_micro", threshold=0.5, random_state=0).fit(*data)
    assert (model.history_["val_f1_micro"] >= fixed.history_["val_f1_micro"]).all()


def test_without_patience_all_rows_train_and_the_last_weights_stay(data):
    model = Linear(patience=None, random_state=0).fit(*data)
    assert len(model.history_) == model.best_epoch_ == 7
    assert not any(column.startswith("val_") for column in model.history_)


def test_state_round_trip(data):
    model = Linear(random_state=0).fit(*data)
    other = Linear(random_state=0)
    for name in ("n_features_in_", "n_labels_", "label_names_", "_single_label", "threshold_"):
        setattr(other, name, getattr(model, name))
    other._set_state(model._state())
    np.testing.assert_array_equal(other.predict_proba(data[0]), model.predict_proba(data[0]))
    assert other.history_.equals(model.history_)


def test_a_row_is_scored_alike_in_any_company(data):
    X, Y = data
    model = Linear(epochs=2, random_state=0).fit(X, Y)
    one_by_one = np.vstack([model.predict_proba(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_array_equal(one_by_one, model.predict_proba(X))


class CountSteps(Callback):
    def __init__(self):
        self.steps = 0

    def on_step(self, run, loss):
        self.steps += 1


@pytest.mark.parametrize(
    ("min_steps", "n_features", "expected"),
    [(9, 3, 9), (3, 3, 4), ("auto", 3, 40), ("auto", 101, 4)],
    ids=["few-rows", "enough", "auto", "auto-more-features-than-rows"],
)
def test_an_epoch_has_so_many_steps_at_the_least(min_steps, n_features, expected):
    X = np.random.default_rng(0).normal(size=(100, n_features))
    Y = np.eye(2, dtype=int)[[0, 1] * 50]
    counter = CountSteps()
    settings = {"epochs": 2, "batch_size": 32, "patience": None, "random_state": 0}
    Linear(min_steps=min_steps, callbacks=[counter], **settings).fit(X, Y)
    assert counter.steps == 2 * expected


# -- weights of rows -------------------------------------------------------------------


@pytest.fixture
def weight():
    return np.random.default_rng(1).random(60) + 0.1


def test_only_the_ratios_of_weights_count(data, weight):
    def scores(**weights):
        return Linear(epochs=3, random_state=0).fit(*data, **weights).predict_proba(data[0])

    np.testing.assert_array_equal(scores(sample_weight=np.ones(60)), scores())
    first = scores(sample_weight=weight)
    assert (first != scores()).any()
    np.testing.assert_array_equal(scores(sample_weight=1024 * weight), first)
    huge = scores(sample_weight=weight * 1e307)
    np.testing.assert_allclose(huge, first, rtol=1e-4)


def _weighted_loss(model, X, Y, weight):
    logits = model.network_(model.scaling_.apply(torch.from_numpy(X.astype(np.float32))))
    of_rows = bce(logits, torch.from_numpy(Y.astype(np.float32))).mean(dim=1).detach().numpy()
    return np.average(of_rows, weights=weight)


def test_weights_of_validation_rows(data, weight):
    """In the validation loss and in the monitored metric: those of a Dataset, where it has any."""
    X, Y = data
    parts = Dataset(X[40:], as_labels(Y[40:]), weights=weight[40:])
    fit = {"sample_weight": weight[:40]}
    model = Linear(epochs=1, random_state=0).fit(X[:40], Y[:40], validation=parts, **fit)
    expected = _weighted_loss(model, X[40:], Y[40:], weight[40:])
    assert model.history_["val_loss"][0] == pytest.approx(expected, rel=1e-5)
    pair = Linear(epochs=1, random_state=0).fit(X[:40], Y[:40], validation=(X[40:], Y[40:]), **fit)
    expected = _weighted_loss(pair, X[40:], Y[40:], np.ones(20))
    assert pair.history_["val_loss"][0] == pytest.approx(expected, rel=1e-5)
    ranked = Linear(epochs=1, monitor="map", random_state=0)
    ranked.fit(X[:40], Y[:40], validation=parts, **fit)
    scores = ranked.predict_proba(X[40:])
    expected = mean_average_precision(Y[40:], scores, sample_weight=weight[40:])
    assert ranked.history_["val_map"][0] == pytest.approx(expected)
    assert expected != pytest.approx(mean_average_precision(Y[40:], scores))


def test_held_out_rows_keep_their_weights(data, weight):
    X, Y = data
    model = Linear(epochs=1, random_state=0).fit(X, Y, sample_weight=weight)
    _, held = Linear(random_state=0)._rows_to_hold_out(X, as_labels(Y))
    expected = _weighted_loss(model, X[held], Y[held], weight[held])
    assert model.history_["val_loss"][0] == pytest.approx(expected, rel=1e-5)


def test_a_checkpoint_belongs_to_its_weights(data, weight, tmp_path):
    X, Y = data
    settings = {"checkpoint": tmp_path, "epochs": 2, "random_state": 0}
    model = Linear(**settings).fit(X, Y, sample_weight=weight)
    again = Linear(**settings).fit(X, Y, sample_weight=weight)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    for other in (None, weight[::-1].copy()):
        with pytest.raises(InputError, match="belongs to a run with other data"):
            Linear(**settings).fit(X, Y, sample_weight=other)


def test_an_objective_without_weights_is_refused(data, weight):
    with pytest.raises(InputError, match="TwoStages has no weights of rows: leave sample_weight"):
        TwoStages(random_state=0).fit(*data, sample_weight=weight)

    class MeanLoss(Linear):
        loss = staticmethod(lambda logits, targets: bce(logits, targets).mean())

    with pytest.raises(InputError, match="returns one number for all rows"):
        MeanLoss(random_state=0).fit(*data, sample_weight=weight)

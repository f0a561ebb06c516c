"""The base of the neural estimators, on small methods of its own."""

import numpy as np
import pytest
import torch
from torch import nn

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

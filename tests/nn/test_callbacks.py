"""Callbacks really write what TensorBoard and MLflow read."""

import numpy as np
import pytest
from sklearn.base import clone

from labelweave.dependent.mlp import MLP
from labelweave.exceptions import MissingExtraError
from labelweave.nn.callbacks import Callback, MLflowLogger, ProgressCallback, TensorBoardLogger


@pytest.fixture
def data():
    X = np.random.default_rng(0).normal(size=(30, 4))
    return X, (X[:, :2] > 0).astype(int)


def model(**changes):
    return MLP(hidden=(4,), epochs=3, batch_size=8, random_state=0, **changes)


class Interrupt(Callback):
    def on_step(self, run, loss):
        if run.epoch == 1:
            raise KeyboardInterrupt


def test_tensorboard_events(data, tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    fitted = model(callbacks=[TensorBoardLogger(tmp_path)]).fit(*data)
    events = reader.EventAccumulator(str(tmp_path / "training")).Reload()
    for name in ("loss", "bce", "val_loss", "lr"):
        written = events.Scalars(name)
        assert [event.step for event in written] == [1, 2, 3]
        np.testing.assert_allclose([e.value for e in written], fitted.history_[name], rtol=1e-6)


def test_mlflow_run_goes_on_after_an_interrupt(data, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    uri = f"sqlite:///{tmp_path}/mlflow.db"

    def fit(*more):
        callbacks = [MLflowLogger(uri, experiment="toy"), *more]
        return model(
            callbacks=callbacks, checkpoint=tmp_path / "run", checkpoint_every=0, monitor="map"
        ).fit(*data)

    client = mlflow.MlflowClient(tracking_uri=uri)

    def runs():
        return client.search_runs([client.get_experiment_by_name("toy").experiment_id])

    with pytest.raises(KeyboardInterrupt):
        fit(Interrupt())
    assert [run.info.status for run in runs()] == ["FAILED"]
    fitted = fit()
    (run,) = runs()
    assert run.info.status == "FINISHED"
    assert run.data.params["epochs"] == "3"
    written = client.get_metric_history(run.info.run_id, "loss")
    assert [metric.step for metric in written] == [1, 2, 3]
    np.testing.assert_allclose([m.value for m in written], fitted.history_["loss"])


def test_callbacks_are_cloned_and_called_in_order(data):
    calls = []

    class Notes(Callback):
        def on_start(self, run):
            calls.append("start")

        def on_epoch(self, run, row):
            calls.append(int(row["epoch"]))
            assert run.history[-1] is row
            assert run.monitor in row

        def on_end(self, run, *, failed):
            calls.append("end")

    original = model(callbacks=[Notes()])
    clone(original).fit(*data)
    assert calls == ["start", 1, 2, 3, "end"]


def test_a_missing_package_is_named(data, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(MissingExtraError, match=r"labelweave\[track\]"):
        model(callbacks=[MLflowLogger(f"sqlite:///{tmp_path}/x.db")]).fit(*data)


def test_the_progress_bar_shows_loss_and_score(data, monkeypatch):
    notes = []

    class Bar:
        is_shown = True

        def __init__(self, description, total):
            assert (description, total) == ("training", 9)

        def __enter__(self):
            return self

        def move_to(self, done, note):
            notes.append((done, note))

        def __exit__(self, *error):
            notes.append("closed")

    monkeypatch.setattr("labelweave.nn.callbacks.ProgressBar", Bar)
    model(verbose=1).fit(*data)
    assert notes[0][1].startswith("epoch 1/3 loss 0.")
    assert " val_loss " in notes[3][1]
    assert [note[0] for note in notes[:-1]] == list(range(1, 10))
    assert notes[-1] == "closed"
    assert ProgressCallback().state() == {}

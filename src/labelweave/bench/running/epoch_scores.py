"""Scores of the test rows after each epoch, for learning curves; no choice depends on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from labelweave.data import Dataset
from labelweave.metrics import get_metric
from labelweave.nn.batches import Batches
from labelweave.nn.callbacks import Callback, RunView
from labelweave.nn.prediction import predict_scores


class TestCurve(Callback):
    """Writes `test_<metric>` into the history of a neural method.

    * `model`: The estimator that carries this callback; its scaling of the features is used.
    * `test`: Rows with their true labels.
    * `metrics`: Metrics of scores, such as "map".
    """

    __test__ = False  # no test of pytest

    def __init__(self, model: Any, test: Dataset, metrics: Sequence[str]) -> None:
        self.model = model
        self.test = test
        self.metrics = metrics

    def on_epoch(self, run: RunView, row: dict[str, float]) -> None:
        X = self.model._checked_features(self.test.X, reset=False)
        n_rows = self.model.network_spec().rows_at_once(X.shape[1], self.test.Y.n_labels)
        batches = Batches(X, batch_size=n_rows, scaling=self.model.scaling_)
        was_training = run.task.training
        run.task.eval()
        scores = predict_scores(run.task.scores, batches)
        run.task.train(was_training)
        if scores.shape != self.test.Y.shape:  # a stage that learns no labels yet
            return
        for name in self.metrics:
            row[f"test_{name}"] = get_metric(name)(self.test.Y, Y_score=scores)

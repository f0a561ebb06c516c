"""A model together with the rows it is evaluated on: what the report on a model is made from."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from labelweave.data import Dataset
from labelweave.exceptions import (
    DataFileError,
    DatasetUnavailableError,
    InputError,
)
from labelweave.labels import LabelMatrix
from labelweave.metrics import Scores
from labelweave.pipeline.data_parts import Source, with_labels
from labelweave.pipeline.model_folder import METRICS, open_model
from labelweave.pipeline.model_input import input_of_model
from labelweave.pipeline.model_scores import rows_to_score, score, verdict_on

__all__ = ["EvaluatedModel", "evaluate_folder", "evaluate_model"]

_WRAPPED_MODEL = ("best_estimator_", "classifier_", "estimator_")


@dataclass(frozen=True)
class EvaluatedModel:
    """A model and the rows it is evaluated on."""

    model: Any
    rows: Dataset
    # Which rows they are, in words, such as "test rows of the official split"
    rows_description: str
    seen_description: str  # Whether the model was trained on them, in words
    # The number of rows that the model was trained on; None if it is not known
    n_seen: int | None = None
    train_labels: LabelMatrix | None = None
    validation: Dataset | None = None  # The rows on which the threshold of the model was chosen
    # What `labelweave train` recorded: time, versions, protocol
    training_record: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None

    @cached_property
    def scores(self) -> Scores:
        """All metrics on the rows; the model predicts them once."""
        scores = score(self.model, self.rows, train_labels=self.train_labels)
        if scores.Y_score is None or scores.Y_pred is None:
            missing = "probabilities" if scores.Y_score is None else "label sets"
            raise InputError(
                f"{type(self.model).__name__} predicts no {missing}: a report needs a model with "
                "predict_proba and predict"
            )
        return scores

    @property
    def truth(self) -> LabelMatrix:
        return self.scores.Y_true

    @cached_property
    def probabilities(self) -> Any:
        """An array; with many labels a sparse matrix of the best labels of each row."""
        scores = self.scores.Y_score
        return sp.csr_array(scores) if sp.issparse(scores) else np.asarray(scores)

    @property
    def has_top_labels(self) -> bool:
        """Whether only the best labels of each row are predicted, because there are many."""
        return sp.issparse(self.scores.Y_score)

    @property
    def has_probabilities(self) -> bool:
        """Whether all scores lie between 0 and 1."""
        return bool(self.probabilities.min() >= 0 and self.probabilities.max() <= 1)

    @cached_property
    def predicted(self) -> Any:
        """The predicted label sets as a Boolean array; with many labels a sparse one."""
        positive = self.scores.Y_pred.positive()
        if self.has_top_labels:
            return sp.csr_array(positive)
        return positive.toarray() if sp.issparse(positive) else positive

    @cached_property
    def method(self) -> Any:
        """The method inside a pipeline, a search, a calibration or a text or image classifier."""
        model = self.model
        while not hasattr(model, "history_"):
            if isinstance(model, Pipeline):
                model = model.steps[-1][1]
                continue
            inner = (getattr(model, name, None) for name in _WRAPPED_MODEL)
            wrapped = next((one for one in inner if one is not None), None)
            if wrapped is None:
                break
            model = wrapped
        return model


def evaluate_folder(
    folder: Path, data: Any, *, part: str | None, reading: Mapping[str, Any]
) -> EvaluatedModel:
    """Load a saved model and the rows to evaluate it on: its test rows, or other data."""
    model, origin = open_model(str(folder))
    if data is None and not origin.source:
        raise InputError(
            f"{folder} does not record the data it was trained on: name the data to report on "
            "(--data FILE_OR_NAME)"
        )
    source = origin.source if data is None else data
    if isinstance(source, str | Path):
        reading = origin.reading_of(str(source), reading)
        try:
            loaded, _ = Source(str(source), reading).load_for(model)
        except (DatasetUnavailableError, DataFileError) as error:
            if data is not None or Path(source).exists():
                raise
            raise InputError(
                f"the training data of {folder}, {source}, are not available here: name them with "
                "--data FILE_OR_NAME"
            ) from error
    else:
        loaded = _as_dataset(data)
    loaded = input_of_model(model, loaded)
    chosen = rows_to_score(loaded, part, origin, reading)
    rows = with_labels(chosen.rows, list(model.label_names_))
    n_seen = origin.count_seen(rows)
    return EvaluatedModel(
        model,
        rows,
        rows_description=chosen.how,
        seen_description=verdict_on(n_seen, len(rows)),
        n_seen=n_seen,
        train_labels=chosen.train_labels,
        validation=chosen.validation,
        training_record=_read_training_record(folder),
        folder=folder,
    )


def evaluate_model(model: Any, data: Any) -> EvaluatedModel:
    """Return a fitted estimator with all rows of these data."""
    if data is None:
        raise InputError("a report on a model in memory needs rows to score: pass data=")
    unknown = "it is not known whether the model was trained on them"
    return EvaluatedModel(model, _as_dataset(data), "all rows of the data", unknown)


def _as_dataset(data: Any) -> Dataset:
    if isinstance(data, Dataset):
        return data
    if isinstance(data, str | Path):
        return Source(str(data), {}).load()
    if isinstance(data, tuple | list) and len(data) == 2:
        return Dataset(*data)
    raise InputError("data must be a Dataset, a pair (X, Y), a file or the name of a data set")


def _read_training_record(folder: Path) -> dict[str, Any]:
    from labelweave.persistence import read_json

    if not os.path.lexists(folder / METRICS):
        return {}
    stored = read_json(folder, METRICS)
    return stored if isinstance(stored, dict) else {}

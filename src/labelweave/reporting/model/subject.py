"""What a model's report is about: the model, the rows it is judged on, and its origin."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.assembly.model_folder import METRICS, open_model
from labelweave.assembly.protocol import Source, check_width, with_labels
from labelweave.assembly.scored_rows import rows_to_score, verdict_on
from labelweave.assembly.scoring import score
from labelweave.data import Dataset
from labelweave.exceptions import (
    DataFileError,
    DatasetUnavailableError,
    InputError,
    ModelFolderError,
)
from labelweave.labels import LabelMatrix
from labelweave.metrics import Scores
from labelweave.reporting.numbers.labels import most_frequent, similar_side_by_side
from labelweave.reporting.numbers.pairs import CoOccurrence, co_occurrence

__all__ = ["Subject", "subject_of_folder", "subject_of_model"]


@dataclass(frozen=True)
class Subject:
    """A model and the rows it is judged on.

    Parameters
    ----------
    model : fitted estimator
    rows : Dataset
    how : str
        Which rows they are, in words.
    verdict : str
        Whether the model has seen them.
    seen : int or None
        How many of them it has; None if that is not known.
    train_labels : LabelMatrix, optional
    validation : Dataset, optional
        The rows on which the model's threshold was chosen.
    metrics : mapping, optional
        What `labelweave train` wrote down: time, versions, protocol.
    folder : Path, optional
    n_shown : int, default=30
        How many labels a heat map shows.
    """

    model: Any
    rows: Dataset
    how: str
    verdict: str
    seen: int | None = None
    train_labels: LabelMatrix | None = None
    validation: Dataset | None = None
    metrics: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    n_shown: int = 30

    @cached_property
    def scores(self) -> Scores:
        """Every metric on the rows; the model is asked once."""
        found = score(self.model, self.rows, train_labels=self.train_labels)
        if found.Y_score is None or found.Y_pred is None:
            missing = "probabilities" if found.Y_score is None else "label sets"
            raise InputError(
                f"{type(self.model).__name__} gives no {missing}: a report needs a model with "
                "predict_proba and predict"
            )
        return found

    @property
    def truth(self) -> LabelMatrix:
        return self.scores.Y_true

    @cached_property
    def probabilities(self) -> np.ndarray:
        return np.asarray(self.scores.Y_score)

    @cached_property
    def predicted(self) -> np.ndarray:
        """The predicted label sets, as a Boolean array."""
        chosen = self.scores.Y_pred.positive()
        return chosen.toarray() if sp.issparse(chosen) else chosen

    @cached_property
    def learner(self) -> Any:
        """The method itself, inside texts' weights, a calibration, a pipeline or a search."""
        model = self.model
        while True:
            if hasattr(model, "steps"):
                model = model.steps[-1][1]
                continue
            around = ("best_estimator_", "classifier_", "estimator_")
            inner = next((getattr(model, name) for name in around if hasattr(model, name)), None)
            if inner is None or hasattr(model, "history_"):
                return model
            model = inner

    @cached_property
    def shown_labels(self) -> np.ndarray:
        """Columns of the most frequent labels, those that go together side by side."""
        frequent = most_frequent(self.truth, self.n_shown)
        return frequent[similar_side_by_side(co_occurrence(self.truth[:, frequent]).share)]

    @cached_property
    def together(self) -> CoOccurrence:
        """How the shown labels go together."""
        return co_occurrence(self.truth[:, self.shown_labels])

    def which_labels(self) -> str:
        """In words, which labels a plot shows."""
        n, all_labels = len(self.shown_labels), self.truth.n_labels
        return (
            "all labels" if n == all_labels else f"the {n} most frequent of {all_labels:,} labels"
        )


def subject_of_folder(
    folder: Path, data: Any, *, part: str | None, reading: Mapping[str, Any], n_shown: int
) -> Subject:
    """A saved model, on its test rows or on other data."""
    model, origin = open_model(str(folder))
    if data is None and not origin.source:
        raise InputError(
            f"{folder} does not tell what data it was trained on: give the data to report on "
            "(--data FILE_OR_NAME)"
        )
    source = origin.source if data is None else data
    if isinstance(source, str | Path):
        reading = reading or origin.reading_of(str(source))
        try:
            loaded = Source(str(source), reading).load()
        except (DatasetUnavailableError, DataFileError) as error:
            if data is not None or Path(source).exists():
                raise
            raise InputError(
                f"the data that {folder} was trained on, {source}, is not to be had here: give it "
                "with --data FILE_OR_NAME"
            ) from error
    else:
        loaded = _as_dataset(data)
    chosen = rows_to_score(loaded, part, origin, reading)
    rows = with_labels(chosen.rows, list(model.label_names_))
    check_width(rows, getattr(model, "n_features_in_", None))
    seen = origin.count_seen(rows)
    return Subject(
        model,
        rows,
        chosen.how,
        verdict_on(seen, len(rows)),
        seen,
        chosen.train_labels,
        chosen.validation,
        _read_metrics(folder),
        folder,
        n_shown,
    )


def subject_of_model(model: Any, data: Any, *, n_shown: int) -> Subject:
    """A fitted estimator, on all rows of the data given."""
    if data is None:
        raise InputError("a report on a model in memory needs rows to score: pass data=")
    rows = _as_dataset(data)
    verdict = "whether the model has seen them is not known"
    return Subject(model, rows, "all rows given", verdict, n_shown=n_shown)


def _as_dataset(data: Any) -> Dataset:
    if isinstance(data, Dataset):
        return data
    if isinstance(data, str | Path):
        return Source(str(data), {}).load()
    if isinstance(data, tuple | list) and len(data) == 2:
        return Dataset(*data)
    raise InputError("data must be a Dataset, a pair (X, Y), a file or the name of a data set")


def _read_metrics(folder: Path) -> dict[str, Any]:
    path = folder / METRICS
    if not path.exists():
        return {}
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise ModelFolderError(f"{path} is damaged: delete it, the model works without") from error
    return stored if isinstance(stored, dict) else {}

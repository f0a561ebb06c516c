"""Fit the method of a cell and collect what its record keeps; shared by the kinds."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from labelweave.bench.evaluation_protocol import PANEL
from labelweave.bench.running.cell_scores import score_test_rows
from labelweave.bench.running.method_settings import published_settings
from labelweave.bench.running.plan import Cell
from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels
from labelweave.pipeline.data_parts import Parts
from labelweave.pipeline.recipe import Recipe, defaults, weights_for

KEEPABLE = ("label_similarity", "class_similarity", "test_curve:<metric>")


@dataclass
class Outcome:
    """The result of a cell."""

    rows: dict[str, int]
    scores: dict[str, float | None]
    thresholds: dict[str, float]
    fit_seconds: float
    history: dict[str, list[Any]] | None = None
    artifacts: dict[str, Any] = field(default_factory=dict)


def quick_rows(cell: Cell, data: Dataset) -> Dataset:
    """Return the rows of a smoke run, or all rows of a full run."""
    return random_rows(data, None if cell.quick is None else cell.quick.rows, cell.seed)


def random_rows(data: Dataset, most_rows: int | None, seed: int) -> Dataset:
    """Draw at most this number of rows, in their order; None keeps all."""
    if most_rows is None or len(data) <= most_rows:
        return data
    return data[np.sort(np.random.default_rng(seed).permutation(len(data))[:most_rows])]


def fit_and_score(cell: Cell, parts: Parts) -> Outcome:
    """Fit to the train rows, choose on the validation rows, score the test rows once.

    A method that learns from the validation rows too gives its out-of-fold probabilities to
    choose on: see :meth:`labelweave.predictor.MultiLabelPredictor.held_out_predictions`. Without
    validation rows, only a threshold that uses no labels can be chosen, on the test rows.
    """
    model, seconds = fit(cell, parts)
    at_test = model.predict_proba(parts.test.X)
    if len(parts.validation):
        choose_on = model.held_out_predictions(parts.validation)
    else:
        choose_on = (as_labels(np.zeros(at_test.shape)), at_test)  # zeros: no labels are used
    scores, thresholds = score_test_rows(
        cell.protocol,
        choose_on,
        (parts.test.Y, at_test),
        (*PANEL, *cell.metrics),
        train_labels=parts.train.Y,
    )
    return Outcome(
        parts.sizes(), scores, thresholds, seconds, _history(model), _artifacts(cell, model, parts)
    )


def fit(cell: Cell, parts: Parts, **more: Any) -> tuple[Any, float]:
    """Return a fitted model and the seconds of the fit; `more` are further parameters."""
    parameters = {"threshold": 0.5, "random_state": cell.seed, **_settings(cell), **more}
    model = Recipe(cell.method, parameters).make(parts.train)
    _watch_test_rows(cell, model, parts)
    started = time.perf_counter()
    validation = parts.validation if len(parts.validation) else None
    weights = weights_for(model, parts.train)
    model.fit(parts.train.X, parts.train.Y, validation=validation, **weights)
    return model, time.perf_counter() - started


def _settings(cell: Cell) -> dict[str, Any]:
    """Return the parameters of the method, with fewer epochs and steps in a smoke run."""
    start = published_settings(cell.method, cell.published, cell.data.source)
    settings = {**start, **cell.settings}
    if cell.quick is None:
        return settings
    known = {**defaults(cell.method), **settings}
    for outer, part in start.items():
        if isinstance(part, BaseEstimator):
            known |= {f"{outer}__{inner}": value for inner, value in part.get_params().items()}
    most = {name: cell.quick.epochs for name in known if name.rpartition("_")[2] == "epochs"}
    most["pretrain_steps"] = cell.quick.steps
    short = {
        name: min(value, most[name])
        for name, value in known.items()
        if name in most and isinstance(value, int)
    }
    if inner := _of_the_network(cell):
        short[f"{inner}epochs"] = cell.quick.epochs
    return {**settings, **short}


def _of_the_network(cell: Cell) -> str:
    """What the parameters of training are prefixed by, where a method trains another's network."""
    return "base__" if "base" in defaults(cell.method) else ""


def _watch_test_rows(cell: Cell, model: Any, parts: Parts) -> None:
    """Add the columns of `test_curve:<metric>` to the history; the fit does not use them."""
    wanted = [what.partition(":")[2] for what in cell.keep if what.startswith("test_curve:")]
    core = getattr(model, "classifier", model)
    inner = _of_the_network(cell)
    if wanted and (inner or "callbacks" in core.get_params(deep=False)):
        from labelweave.bench.running.epoch_scores import TestCurve

        if core is not model:
            raise InputError("a test curve of texts is not built: give the suite features")
        core.set_params(**{f"{inner}callbacks": [TestCurve(core, parts.test, wanted)]})


def _history(model: Any) -> dict[str, list[Any]] | None:
    core = getattr(model, "classifier_", model)
    history = getattr(core, "history_", None)
    if history is None:
        return None
    return {
        name: [float(f"{value:.6g}") if isinstance(value, float) else value for value in column]
        for name, column in history.to_dict("list").items()
    }


def _artifacts(cell: Cell, model: Any, parts: Parts) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for what in cell.keep:
        if what == "label_similarity":
            if hasattr(model, what):
                kept[what] = _label_similarity(model, parts.test.Y)
        elif what == "class_similarity":
            if hasattr(model, what):
                table = model.class_similarity(parts.test.X, parts.test.Y)
                kept[what] = {
                    "names": [str(name) for name in table.columns],
                    "values": np.round(table.to_numpy(), 6).tolist(),
                }
        elif not what.startswith("test_curve:"):
            raise InputError(f"{what!r} cannot be kept: it is one of {', '.join(KEEPABLE)}")
    return kept


def _label_similarity(model: Any, Y: LabelMatrix) -> dict[str, Any]:
    """Compute the inner products of the label embeddings and how they agree with co-occurrence.

    `agreement` is Spearman's correlation, over pairs of labels, with the correlation of the two
    labels on the test rows.
    """
    from scipy.stats import spearmanr

    table = model.label_similarity()
    together = np.corrcoef(np.nan_to_num(Y.to_numpy()), rowvar=False)
    pairs = np.triu_indices(len(table), 1)
    values = table.to_numpy()
    both = np.isfinite(together[pairs])
    agreement = spearmanr(values[pairs][both], together[pairs][both]).statistic
    return {
        "names": [str(name) for name in table.columns],
        "values": np.round(values, 4).tolist(),
        "agreement": float(agreement) if np.isfinite(agreement) else None,
    }

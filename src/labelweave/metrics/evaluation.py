"""Score a fitted model, or predictions, by every metric that applies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels, is_frame, is_named
from labelweave.metrics._inputs import aligned_columns, check_pred, check_score
from labelweave.metrics.metric_catalog import METRICS, Metric, get_metric
from labelweave.metrics.scores import Scores

__all__ = ["evaluate", "score_predictions"]

_USUAL_K = (1, 3, 5)  # that the literature reports


def evaluate(
    model: Any,
    data: Any,
    *,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    threshold: Any = None,
    propensities: Any = None,
    sample_weight: Any = None,
) -> Scores:
    """Score a fitted model on rows that it was not trained on.

    Parameters
    ----------
    model : fitted estimator, or array of shape (n_rows, n_labels)
        An estimator of this library or of scikit-learn (also a pipeline, or one whose
        `predict_proba` returns a list of arrays), or the probabilities themselves. Probabilities
        are computed once. A model that only has `predict` is scored by the metrics of label sets.
    data : Dataset or (X, Y)
        If both the model and the labels have names, columns are matched by name; the data may
        then lack some labels of the model.
    metrics : names of metrics, optional
        See :data:`labelweave.metrics.METRICS`; default: every metric that applies, with
        k = 1, 3, 5.
    threshold : float, str or Threshold, optional
        How scores become label sets. Default: as in the model's own `predict`; 0.5 for an array
        of probabilities. A rule that has to be tuned must be fitted already: it is never tuned on
        the rows that are scored.
    propensities : array-like of shape (n_labels,), optional
        In the order of the data's labels; needed by the propensity-scored metrics.
    sample_weight : array-like of shape (n_rows,), optional

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.metrics import evaluate
    >>> Y = [["sea"], ["sea", "sun"]]
    >>> probabilities = np.array([[0.9, 0.6], [0.8, 0.7]])
    >>> scores = evaluate(probabilities, (None, Y), metrics=["f1_example", "hamming_loss"])
    >>> scores
    2 rows x 2 labels
    name          metric         value  better
    f1_example    example F1    0.8333  higher
    hamming_loss  Hamming loss  0.2500  lower
    >>> scores["hamming_loss"]
    0.25
    """
    X, Y, title = _unpack(data)
    if sp.issparse(model) or isinstance(model, np.ndarray | list) or is_frame(model):
        outputs = _outputs_of_matrix(model, threshold)
    else:
        outputs = _outputs_of_model(model, X, threshold)
        title = f"{type(core_of(model)).__name__} on {title}"
    truth = labels_of(model, Y, outputs.names)
    outputs = _match(outputs, truth)
    return score_predictions(
        truth,
        Y_score=outputs.scores,
        Y_pred=outputs.sets,
        metrics=metrics,
        propensities=propensities,
        sample_weight=sample_weight,
        title=f"{title}{truth.n_rows} rows x {truth.n_labels} labels",
        thresholds=outputs.thresholds,
    )


def score_predictions(
    Y_true: Any,
    *,
    Y_score: Any = None,
    Y_pred: Any = None,
    metrics: str | Metric | Iterable[str | Metric] | None = None,
    propensities: Any = None,
    sample_weight: Any = None,
    title: str = "",
    thresholds: Any = None,
) -> Scores:
    """Score predictions: :func:`evaluate` without a model.

    Parameters
    ----------
    Y_true : labels of shape (n_rows, n_labels)
    Y_score : array-like or SciPy sparse of the same shape, optional
        A sparse matrix holds the best labels of each row; only metrics at k score it.
    Y_pred : label sets of the same shape, optional
    metrics, propensities, sample_weight
        As in :func:`evaluate`.
    title : str, optional
        Heading of the table.
    thresholds : float or array-like of shape (n_labels,), optional
        Shown beside each label.

    Examples
    --------
    >>> scores = score_predictions([[1, 0], [1, 1]], Y_pred=[[1, 1], [1, 1]])
    >>> scores["subset_accuracy"], scores["recall_macro"]
    (0.5, 1.0)
    """
    if Y_score is None and Y_pred is None:
        raise InputError("there is nothing to score: pass Y_score=, Y_pred= or both")
    truth = as_labels(Y_true)
    if Y_score is not None:
        truth, Y_score = check_score(Y_true, Y_score, sparse=True)
    if Y_pred is not None:
        truth, Y_pred = check_pred(truth if Y_score is not None else Y_true, Y_pred)
    if metrics is None:
        chosen = _applicable(truth, Y_score, Y_pred, propensities)
    else:
        chosen = _named(metrics)
    numbers = []
    for metric in chosen:
        options = {"sample_weight": sample_weight}
        if metric.needs_propensities:
            options["propensities"] = propensities
        numbers.append(metric(truth, Y_score=Y_score, Y_pred=Y_pred, **options))
    title = title or f"{truth.n_rows} rows x {truth.n_labels} labels"
    return Scores(chosen, numbers, title, truth, Y_score, Y_pred, thresholds)


def _named(metrics: str | Metric | Iterable[str | Metric]) -> list[Metric]:
    names = [metrics] if isinstance(metrics, str | Metric) else list(metrics)
    if not names:
        raise InputError("metrics is empty: name at least one, or leave it out for all")
    return list({metric.name: metric for metric in (get_metric(name) for name in names)}.values())


def _applicable(truth: LabelMatrix, Y_score: Any, Y_pred: Any, propensities: Any) -> list[Metric]:
    is_sparse = sp.issparse(Y_score)
    has_probabilities = (
        Y_score is not None and not is_sparse and 0 <= Y_score.min() <= Y_score.max() <= 1
    )
    chosen: list[Metric] = []
    for name, metric in METRICS.items():
        at_k = name.endswith("@k")
        if (
            (Y_pred if metric.needs == "pred" else Y_score) is None
            or (metric.needs == "score" and is_sparse and not at_k)
            or (metric.needs_propensities and propensities is None)
            or (metric.needs_probabilities and not has_probabilities)
        ):
            continue
        if at_k:
            usual = [k for k in _USUAL_K if k == 1 or k <= truth.n_labels]
            chosen += [get_metric(name.replace("@k", f"@{k}")) for k in usual]
        else:
            chosen.append(metric)
    return chosen


class _Outputs(NamedTuple):
    """Predictions of a model, in the order of its own labels."""

    scores: Any
    sets: Any
    names: tuple[str, ...] | None
    thresholds: Any


def _outputs_of_matrix(matrix: Any, threshold: Any) -> _Outputs:
    names = tuple(str(name) for name in matrix.columns) if is_frame(matrix) else None
    if sp.issparse(matrix):
        if threshold is not None:
            raise InputError("a threshold needs the scores of all labels, but they are sparse")
        return _Outputs(matrix, None, names, None)
    scores = np.asarray(matrix)
    rule = _fitted_rule(0.5 if threshold is None else threshold)
    return _Outputs(scores, rule.apply(scores), names, rule.applied_threshold)


def _outputs_of_model(model: Any, X: Any, threshold: Any) -> _Outputs:
    from labelweave.model_selection import label_probabilities
    from labelweave.thresholds import Threshold

    core = core_of(model)
    label_names = getattr(core, "label_names_", None)
    names = None if label_names is None else tuple(str(name) for name in label_names)
    if not hasattr(model, "predict_proba") and not hasattr(model, "decision_function"):
        if threshold is not None or not hasattr(model, "predict"):
            raise InputError(f"{type(core).__name__} computes no scores: it has no predict_proba")
        return _Outputs(None, model.predict(X), names, None)
    from labelweave.top_labels import predicts_top_labels

    if predicts_top_labels(model):
        scores: Any = model.predict_top_k(X)
    else:
        scores = label_probabilities(model, X)
    if threshold is None and getattr(core, "_single_label", False):
        best = scores.argmax(axis=1)
        return _Outputs(scores, best[:, None] == np.arange(scores.shape[1]), names, None)
    rule = getattr(core, "threshold_", None) if threshold is None else _fitted_rule(threshold)
    if isinstance(rule, Threshold):
        return _Outputs(scores, rule.apply(scores), names, rule.applied_threshold)
    return _Outputs(scores, model.predict(X) if hasattr(model, "predict") else None, names, None)


def _fitted_rule(threshold: Any) -> Any:
    from labelweave.thresholds import Threshold, make_threshold

    if isinstance(threshold, Threshold):
        return threshold
    rule = make_threshold(threshold)
    if rule.needs_validation:
        raise InputError(
            f"the threshold {threshold!r} has to be tuned on validation rows first: "
            "pass a fitted Threshold"
        )
    return rule


def core_of(model: Any) -> Any:
    """The estimator inside a search or at the end of a pipeline."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return model


def _unpack(data: Any) -> tuple[Any, Any, str]:
    if hasattr(data, "X") and hasattr(data, "Y"):
        name = getattr(data, "name", None)
        return data.X, data.Y, f"{name}, " if name else ""
    if isinstance(data, Sequence) and len(data) == 2 and not isinstance(data, str):
        return data[0], data[1], ""
    raise InputError("data must be a Dataset or a pair (X, Y)")


def labels_of(model: Any, Y: Any, names: tuple[str, ...] | None) -> LabelMatrix:
    core = core_of(model)
    if getattr(core, "_single_label", False):
        return core._known_labels(Y)
    fits = names is not None and getattr(Y, "shape", (0, len(names)))[1:] == (len(names),)
    return as_labels(Y, names=names if fits and not is_named(Y) else None)


def _match(outputs: _Outputs, truth: LabelMatrix) -> _Outputs:
    """The model's columns in the order of the data's labels."""
    scores, sets, names, thresholds = outputs
    columns = None if names is None else aligned_columns(truth.names, names, "the model")
    if columns is None:
        return outputs
    return _Outputs(
        None if scores is None else scores[:, columns],
        None if sets is None else sets[:, columns],
        truth.names,
        np.asarray(thresholds)[columns] if np.ndim(thresholds) else thresholds,
    )

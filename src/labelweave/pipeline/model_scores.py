"""Which rows a model is scored on, its scores, and what they are worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.capabilities import capabilities
from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.metrics import Metric, Scores, evaluate, propensities, score_predictions
from labelweave.pipeline.model_folder import Origin
from labelweave.thresholds import PromisedThreshold

__all__ = [
    "MAIN_METRICS",
    "ScoredRows",
    "about_empty_rows",
    "about_promise",
    "about_unknown",
    "example_rows",
    "group_table",
    "hierarchical_scores",
    "label_rows",
    "rows_to_score",
    "score",
    "scores_by_group",
    "validation_score",
    "verdict_on",
]

# The metrics of a table where no others are asked for.
MAIN_METRICS = (
    "subset_accuracy",
    "hamming_loss",
    "f1_example",
    "f1_micro",
    "f1_macro",
    "map",
    "auc_macro",
    "lrap",
    "ranking_loss",
    "one_error",
    "precision@1",
    "precision@3",
    "precision@5",
    "ece",
)


class ScoredRows(NamedTuple):
    """Rows to score and, in words, which they are.

    `train_labels` and `validation` are those of the training where the data are its own.
    """

    rows: Dataset
    how: str
    train_labels: LabelMatrix | None = None
    validation: Dataset | None = None


def rows_to_score(
    data: Dataset,
    part: str | None,
    origin: Origin,
    reading: Mapping[str, Any],
    divide_by: LabelMatrix | None = None,
) -> ScoredRows:
    """The part that was asked for; without one the test part where there is such, else all.

    `divide_by` are the labels before corrections, where `data` have been corrected.
    """
    wanted = part or "test"
    if origin.protocol is not None and origin.is_trained_on(data):
        parts = origin.protocol.parts(data, reading, divide_by)
        if part == "all":
            return ScoredRows(data, "all rows", parts.train.Y, parts.validation)
        rows, how = getattr(parts, wanted), f"{wanted} part, as in its training"
        return ScoredRows(rows, how, parts.train.Y, parts.validation)
    if part == "all":
        return ScoredRows(data, "all rows")
    official = None if data.part is None else np.asarray(data.part)
    if official is not None and (official == wanted).any():
        return ScoredRows(data[official == wanted], f"official {wanted} part")
    if part is not None:
        raise InputError(f"{data.name} has no {part} part here: score --part all")
    return ScoredRows(data, "all rows")


def verdict_on(seen: int | None, n_rows: int) -> str:
    """What scores are worth on rows of which the model has seen so many."""
    if seen is None:
        return "the folder does not record which rows the model was trained on"
    if seen == 0:
        return "the model has seen none of them"
    share = "all" if seen == n_rows else f"{seen:,}"
    return (
        f"{share} of them are equal to rows that trained or tuned the model, "
        "so the scores are too good"
    )


def score(
    model: Any,
    data: Dataset,
    *,
    train_labels: LabelMatrix | None = None,
    metrics: Sequence[str] | None = None,
) -> Scores:
    """Every metric that applies, or these.

    Propensity-scored metrics need the labels of the training rows, each label of the data among
    them: one that was added without examples has no propensity.
    """
    weights = None
    if train_labels is not None and set(data.label_names) <= set(train_labels.names):
        weights = propensities(train_labels.select(data.label_names))
    return evaluate(model, data, metrics=metrics, propensities=weights)


def scores_by_group(model: Any, scores: Scores) -> dict[str, Scores]:
    """The scores of the labels with examples, without, and of both; empty where all have some.

    `scores` are those of all labels of a model that has predicted some rows.
    """
    if not capabilities(model).new_labels:
        return {}
    unseen = set(model.unseen_labels_)
    names = scores.Y_true.names
    groups = {
        "seen": [j for j, name in enumerate(names) if name not in unseen],
        "unseen": [j for j, name in enumerate(names) if name in unseen],
    }
    if not all(groups.values()):
        return {}
    metrics = [metric for metric in scores.metrics if not metric.needs_propensities]
    parts = {
        group: score_predictions(
            scores.Y_true.select([names[j] for j in columns]),
            Y_score=np.asarray(scores.Y_score)[:, columns],
            Y_pred=scores.Y_pred.to_numpy()[:, columns],
            metrics=[metric for metric in metrics if _fits(metric, len(columns))],
        )
        for group, columns in groups.items()
    }
    return {**parts, "both": scores}


def hierarchical_scores(scores: Scores, hierarchy: str | None) -> dict[str, float]:
    """Precision, recall and F1 with the broader labels of a file; empty without a file."""
    if hierarchy is None:
        return {}
    from labelweave.hierarchy import LabelHierarchy

    return LabelHierarchy.read(hierarchy).scores(scores.Y_true, scores.Y_pred)


def _fits(metric: Metric, n_labels: int) -> bool:
    """Whether there are as many labels as a metric of the best k needs."""
    _, at, k = metric.name.partition("@")
    return not at or int(k) <= n_labels


def group_table(groups: Mapping[str, Scores], names: Sequence[str] | None) -> list[list[Any]]:
    """One row per metric: name, metric, one value per group, which direction is better.

    `names` are the metrics to show, all if None. The first rows are labels per row: those that are
    there, those that the probabilities lead one to expect, and those that are predicted.
    """
    rows: list[list[Any]] = []
    for name, label, count in (
        ("labels_true", "labels per row", lambda s: np.nansum(s.Y_true.to_numpy() == 1)),
        ("labels_expected", "expected labels per row", lambda s: np.asarray(s.Y_score).sum()),
        ("labels_predicted", "predicted labels per row", lambda s: s.Y_pred.to_numpy().sum()),
    ):
        counts = [float(count(s)) / max(s.Y_true.n_rows, 1) for s in groups.values()]
        rows.append([name, label, *counts, ""])
    values = [
        {metric.name: value for metric, value in zip(s.metrics, s.values(), strict=True)}
        for s in groups.values()
    ]
    for metric in groups["both"].metrics:
        if names is None or metric.name in names:
            better = "higher" if metric.greater_is_better else "lower"
            of_groups = [one.get(metric.name, float("nan")) for one in values]
            rows.append([metric.name, metric.label, *of_groups, better])
    return rows


def about_unknown(Y: LabelMatrix) -> str:
    """What scores on these labels rest on, where some of them are unknown; else empty.

    >>> from labelweave.labels import as_labels
    >>> about_unknown(as_labels([[1, 0], [0, 1]]))
    ''
    >>> about_unknown(as_labels([[1, float("nan")], [0, 1]]))
    '3 of 4 entries are known (2 positive, 1 negative): the scores rest on these'
    """
    counts = Y.counts()
    positives, known = int(counts[0].sum()), int(counts[1].sum())
    total = Y.n_rows * Y.n_labels
    if known == total:
        return ""
    counted = f"{known:,} of {total:,} entries are known ({positives:,} positive"
    if positives == known:
        return (
            f"{counted}, none negative): scores that count false positives or rank positives above "
            "negatives say nothing here"
        )
    return f"{counted}, {known - positives:,} negative): the scores rest on these"


def about_promise(model: Any, scores: Scores) -> str:
    """What a threshold promised beside what it kept on the scored rows; empty without a promise."""
    rule = model.threshold_
    if not isinstance(rule, PromisedThreshold) or scores.Y_score is None:
        return ""
    kept = rule.kept(scores.Y_true, scores.Y_score)
    if not rule.per_label:
        return f"promised: {rule.describe()}; on these rows {kept:.3f}"
    broken = kept > rule.bound if rule.measure == "fdr" else kept < rule.bound
    return (
        f"promised: {rule.describe()}; on these rows from {np.nanmin(kept):.3f} to "
        f"{np.nanmax(kept):.3f}, beyond the bound for {int(broken.sum())} of {len(kept)} labels"
    )


def about_empty_rows(Y: LabelMatrix) -> str:
    """Where many rows have no positive: what that does to scores of each row; else empty.

    >>> from labelweave.labels import as_labels
    >>> about_empty_rows(as_labels([[1, 0], [0, 1]]))
    ''
    >>> about_empty_rows(as_labels([[1, 0], [0, 0], [float("nan"), float("nan")]]))
    '1 of 2 rows have no positive label and count as 0 in example F1, whatever is predicted'
    """
    known = Y.known() if np.isnan(Y.absent) else None  # sparse there; elsewhere `unknown` is
    is_scored = _in_rows(Y.unknown()) < Y.n_labels if known is None else _in_rows(known) > 0
    is_empty = is_scored & (_in_rows(Y.positive()) == 0)
    n_rows, n_empty = int(is_scored.sum()), int(is_empty.sum())
    if n_empty < 0.1 * n_rows or not n_empty:
        return ""
    return (
        f"{n_empty:,} of {n_rows:,} rows have no positive label and count as 0 in example F1, "
        "whatever is predicted"
    )


def _in_rows(marked: Any) -> np.ndarray:
    """How many entries of each row are marked."""
    return np.asarray(marked.sum(axis=1)).ravel()


def validation_score(model: Any, validation: Dataset, metric: Metric) -> float:
    """One metric on the validation rows; out of fold, if the model was trained on them too."""
    Y, probabilities = model.held_out_predictions(validation)
    return metric(Y, Y_score=probabilities, Y_pred=model.threshold_.apply(probabilities))


def label_rows(scores: Scores) -> list[dict[str, Any]]:
    """The scores of each label as plain values."""
    return scores.per_label().to_dict("records")


def example_rows(model: Any, test: Dataset, n_rows: int) -> list[dict[str, Any]]:
    """The true, unknown and predicted labels of a few test rows, spread over the part."""
    n_rows = min(n_rows, len(test))
    if n_rows == 0:
        return []
    chosen = np.linspace(0, len(test) - 1, num=n_rows).astype(int)
    few = test[chosen]
    predicted = model.predict_labels(few.X)
    ids: Sequence[Any] = chosen.tolist() if few.row_ids is None else list(few.row_ids)
    names = np.asarray(few.Y.names, dtype=object)
    unknown = [names[np.isnan(row)].tolist() for row in few.Y.to_numpy()]
    columns = zip(ids, few.Y.to_lists(), unknown, predicted, strict=True)
    return [
        {"row": id, "true": true, "unknown": blank, "predicted": chosen}
        for id, true, blank, chosen in columns
    ]

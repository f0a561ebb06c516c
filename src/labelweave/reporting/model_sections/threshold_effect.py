"""The section on thresholds: how label sets and their scores depend on a common threshold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.bench.running.cell_scores import metric_at_thresholds
from labelweave.capabilities import capabilities
from labelweave.labels import LabelMatrix
from labelweave.metrics import sweep_counts
from labelweave.plotting import draw, line_style
from labelweave.reporting.evaluated_model import EvaluatedModel
from labelweave.reporting.report_content import Block, Figure, Paragraph, Section, Table

__all__ = ["ThresholdEffect", "draw_threshold_effects", "threshold_effect", "threshold_section"]

_METRIC_NAMES = {
    "f1_example": "example F1",
    "f1_micro": "micro F1",
    "f1_macro": "macro F1",
    "subset_accuracy": "subset accuracy",
}


class ThresholdEffect(NamedTuple):
    """Metrics of the label sets at each threshold, and the mean number of labels per row."""

    thresholds: np.ndarray
    metrics: dict[str, np.ndarray]
    labels_per_row: np.ndarray
    true_labels_per_row: float


def threshold_section(evaluated: EvaluatedModel) -> Section:
    """Return metrics at each threshold, on the validation rows and on the scored rows."""
    from labelweave.pipeline.recipe import threshold_in_words

    title = "Threshold"
    if not evaluated.has_probabilities:
        text = "The scores are not probabilities: no thresholds are compared."
        return Section(title, [Paragraph(text)])
    effects = []
    classifier = _classifier_with_threshold(evaluated)
    learned_from_validation = capabilities(classifier).out_of_fold
    if evaluated.validation is not None and not learned_from_validation:
        rows = evaluated.validation.select_labels(evaluated.truth.names)
        position = {str(name): j for j, name in enumerate(evaluated.model.label_names_)}
        columns = [position[name] for name in evaluated.truth.names]
        scores = evaluated.model.predict_proba(rows.X)[:, columns]
        effects.append(("validation rows (for choosing)", threshold_effect(rows.Y, scores)))
    scored_rows = f"{evaluated.rows_description.split(',')[0]} (for information only)"
    effects.append((scored_rows, threshold_effect(evaluated.truth, evaluated.probabilities)))
    threshold = evaluated.scores.thresholds if np.ndim(evaluated.scores.thresholds) == 0 else None
    text = ""
    if classifier is not None:
        text = f"The model makes label sets by: {threshold_in_words(classifier)}. "
    if learned_from_validation:
        text += "The method was trained on the validation rows too, so they are not shown here. "
    if threshold is None and classifier is not None:
        text += (
            "This is not one threshold for all labels; the plot shows the effect of such a "
            "threshold. "
        )
    text += "A threshold chosen on the scored rows would make their scores too optimistic."
    best = "; ".join(
        f"{name}: example F1 is highest at "
        f"{effect.thresholds[np.nan_to_num(effect.metrics['f1_example']).argmax()]:.2f}"
        for name, effect in effects
    )
    model_threshold = (
        "" if threshold is None else f" Dotted line: the threshold of the model, {threshold:.3f}."
    )
    figure = Figure(
        "threshold",
        draw_threshold_effects("threshold", effects, threshold=threshold),
        "The effect of one threshold for all labels",
        f"{best}.",
        "Above: metrics of the label sets at each threshold. Below: the mean number of predicted "
        f"labels per row, and that of the true labels (dashed).{model_threshold}",
    )
    return Section(title, [Paragraph(text), figure, *_threshold_tables(effects)])


def _threshold_tables(effects: list[tuple[str, ThresholdEffect]]) -> list[Block]:
    return [
        Table(
            f"Metrics at every tenth threshold, {name}",
            ("threshold", *effect.metrics, "labels per row"),
            [
                (
                    float(effect.thresholds[k]),
                    *(float(values[k]) for values in effect.metrics.values()),
                    float(effect.labels_per_row[k]),
                )
                for k in range(9, len(effect.thresholds), 10)
            ],
            folded=True,
        )
        for name, effect in effects
    ]


def _classifier_with_threshold(evaluated: EvaluatedModel) -> Any:
    """Return the classifier of this library that makes the label sets, if there is one."""
    from labelweave.thresholds import Threshold

    for model in (evaluated.model, evaluated.method):
        if isinstance(getattr(model, "threshold_", None), Threshold):
            return model
    return None


def threshold_effect(Y: LabelMatrix, scores: np.ndarray, thresholds: Any = None) -> ThresholdEffect:
    """Compute the metrics of the label sets that each common threshold makes.

    >>> from labelweave.labels import as_labels
    >>> Y, scores = as_labels([[1, 0], [1, 1]]), np.array([[0.9, 0.2], [0.4, 0.7]])
    >>> effect = threshold_effect(Y, scores, [0.3, 0.8])
    >>> effect.metrics["subset_accuracy"], effect.labels_per_row
    (array([1. , 0.5]), array([1.5, 0.5]))
    """
    if thresholds is None:
        thresholds = np.linspace(0.01, 0.99, 99)
    thresholds = np.asarray(thresholds, dtype=np.float64)
    metrics = {name: metric_at_thresholds(name, Y, scores, thresholds) for name in _METRIC_NAMES}
    counts = sweep_counts(Y, scores, thresholds)
    return ThresholdEffect(
        thresholds,
        metrics,
        counts.predicted.sum(axis=0) / Y.n_rows,
        float(counts.positive.sum() / Y.n_rows),
    )


def draw_threshold_effects(
    name: str, effects: Sequence[tuple[str, ThresholdEffect]], *, threshold: float | None
) -> str:
    """Return one plot per part of the rows; `threshold` is that of the model."""

    def paint(figure: Any) -> None:
        grid = figure.subplots(
            2, len(effects), sharex=True, sharey="row", squeeze=False, height_ratios=[3, 1]
        )
        for (title, effect), (above, below) in zip(effects, grid.T, strict=True):
            every = max(1, len(effect.thresholds) // 8)
            for k, (metric, values) in enumerate(effect.metrics.items()):
                above.plot(
                    effect.thresholds,
                    values,
                    label=_METRIC_NAMES[metric],
                    markevery=(2 * k, every),
                    **line_style(k)._asdict(),
                )
            above.set_title(title)
            below.plot(effect.thresholds, effect.labels_per_row, color="black", linewidth=1.4)
            below.axhline(effect.true_labels_per_row, color="#777777", linewidth=1, linestyle="--")
            below.set(xlabel="threshold", ylim=(0, max(3 * effect.true_labels_per_row, 1)))
            if threshold is not None:
                for axis in (above, below):
                    axis.axvline(threshold, color="#555555", linewidth=1, linestyle=(0, (1, 2)))
        grid[0, 0].set_ylabel("score")
        grid[1, 0].set_ylabel("labels\nper row")
        grid[0, -1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)

    return draw(name, 3.4 * len(effects) + 1.7, 4.2, paint)

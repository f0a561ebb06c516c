"""Probabilities against the truth, and what the threshold makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.reporting.document import Block, Figure, Paragraph, Section, Table
from labelweave.reporting.model.subject import Subject
from labelweave.reporting.numbers.curves import (
    ThresholdEffect,
    precision_recall,
    reliability,
    threshold_effect,
)
from labelweave.reporting.numbers.labels import most_frequent
from labelweave.reporting.plots.probabilities import (
    precision_recall_plot,
    reliability_plot,
    threshold_plot,
)

__all__ = ["probabilities_section", "threshold_section"]

_MOST_CURVES = 7
_TOGETHER = "all labels together"


def probabilities_section(subject: Subject) -> Section:
    """Precision-recall curves and the reliability diagram."""
    return Section("Probabilities", [*_precision_recall(subject), *_reliability(subject)])


def _precision_recall(subject: Subject) -> list[Block]:
    truth, scores = subject.truth, subject.probabilities
    curves = {}
    together = precision_recall(truth, scores)
    if together is None:
        return [Paragraph("No scored row has a label: there are no precision-recall curves.")]
    curves[_TOGETHER] = together
    chosen = most_frequent(truth, _MOST_CURVES if truth.n_labels > 1 else 0)
    for j in chosen:
        curve = precision_recall(truth[:, [j]], scores[:, [j]])
        if curve is not None:
            curves[truth.names[j]] = curve
    which = f"All labels in one ranking, and the {len(curves) - 1} most frequent labels"
    if len(chosen) in (0, truth.n_labels):
        which = "All labels in one ranking, and each label" if len(chosen) else "The one label"
    said = "; ".join(f"{name}: {curve.average_precision:.2f}" for name, curve in curves.items())
    return [
        Figure(
            "precision-recall",
            precision_recall_plot("precision-recall", curves, together=_TOGETHER),
            "Precision and recall",
            f"Average precision of {said}.",
            f"{which}; AP is the average precision. Unknown entries are left out.",
        )
    ]


def _reliability(subject: Subject) -> list[Block]:
    if not _are_probabilities(subject.probabilities):
        return [Paragraph("The scores are no probabilities: there is no reliability diagram.")]
    bins = reliability(subject.truth, subject.probabilities)
    rows = [
        (f"{bins.edges[k]:.2f} to {bins.edges[k + 1]:.2f}", int(n), promised, happened)
        for k, (n, promised, happened) in enumerate(
            zip(bins.entries, bins.promised, bins.happened, strict=True)
        )
    ]
    error = subject.scores["ece"]
    return [
        Figure(
            "reliability",
            reliability_plot("reliability", bins),
            "Reliability",
            f"Share of positives against probability in 15 bins; calibration error {error:.4f}.",
            "All labels together. On the dotted line a probability comes true as often as it "
            "says; below it the model is too sure of itself. The lower plot counts the entries.",
        ),
        Table(f"The bins of the reliability diagram, {subject.how}", _BINS, rows, folded=True),
    ]


_BINS = ("probability", "entries", "mean probability", "share of positives")


def threshold_section(subject: Subject) -> Section:
    """Metrics of label sets at each cut, on validation and on scored rows, named as such."""
    from labelweave.assembly.recipe import threshold_in_words

    title = "Threshold"
    if not _are_probabilities(subject.probabilities):
        return Section(title, [Paragraph("The scores are no probabilities: no cuts are shown.")])
    effects = []
    owner = _owner_of_the_rule(subject)
    learnt_from_all = getattr(owner, "_tunes_out_of_fold", False)
    if subject.validation is not None and not learnt_from_all:
        rows = subject.validation.select_labels(subject.truth.names)
        scores = subject.model.predict_proba(rows.X)[:, _columns(subject)]
        effects.append(("validation rows (to choose on)", threshold_effect(rows.Y, scores)))
    part = f"{subject.how.split(',')[0]} (to look at only)"
    effects.append((part, threshold_effect(subject.truth, subject.probabilities)))
    cut = subject.scores.cuts if np.ndim(subject.scores.cuts) == 0 else None
    text = ""
    if owner is not None:
        text = f"The model makes label sets by: {threshold_in_words(owner)}. "
    if learnt_from_all:
        text += "The method learnt from the validation rows too: no cuts are shown on them. "
    if cut is None and owner is not None:
        text += "It is not one cut for all labels; the plot shows what such a cut would do. "
    text += "A cut that is chosen on the rows that are scored makes their scores too good."
    best = "; ".join(
        f"{name}: example F1 is highest at {_best_cut(effect):.2f}" for name, effect in effects
    )
    blocks: list[Block] = [
        Paragraph(text),
        Figure(
            "threshold",
            threshold_plot("threshold", effects, cut=cut),
            "What one cut for all labels does",
            f"{best}.",
            "Above, metrics of the label sets that each cut makes; below, how many labels a row "
            "it predicts, and how many there are (dashed)."
            + ("" if cut is None else f" Dotted line: the model's own cut, {cut:.3f}."),
        ),
    ]
    return Section(title, [*blocks, *_tables(effects)])


def _tables(effects: list[tuple[str, ThresholdEffect]]) -> list[Block]:
    return [
        Table(
            f"Metrics at every tenth cut, {name}",
            ("cut", *effect.metrics, "labels a row"),
            [
                (float(effect.cuts[k]), *(float(v[k]) for v in effect.metrics.values()), float(n))
                for k, n in list(enumerate(effect.labels_a_row))[9::10]
            ],
            folded=True,
        )
        for name, effect in effects
    ]


def _owner_of_the_rule(subject: Subject) -> Any:
    """The estimator of this library that makes the label sets, where there is one."""
    from labelweave.thresholds import Threshold

    for model in (subject.model, subject.learner):
        if isinstance(getattr(model, "threshold_", None), Threshold):
            return model
    return None


def _best_cut(effect: ThresholdEffect) -> float:
    return float(effect.cuts[np.nan_to_num(effect.metrics["f1_example"]).argmax()])


def _columns(subject: Subject) -> list[int]:
    """Columns of the model in the order of the scored labels."""
    position = {str(name): j for j, name in enumerate(subject.model.label_names_)}
    return [position[name] for name in subject.truth.names]


def _are_probabilities(scores: np.ndarray) -> bool:
    return bool(scores.min() >= 0 and scores.max() <= 1)

"""The section on probabilities: precision-recall curves and the reliability diagram."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from labelweave.labels import LabelMatrix
from labelweave.metrics._curves import ranked_together
from labelweave.metrics.calibration_error import calibration_bins
from labelweave.plotting import draw, line_style, log_scale, shorten
from labelweave.reporting.evaluated_model import EvaluatedModel
from labelweave.reporting.heat_maps import most_frequent
from labelweave.reporting.report_content import Block, Figure, Paragraph, Section, Table

__all__ = [
    "PrecisionRecall",
    "Reliability",
    "draw_precision_recall",
    "draw_reliability",
    "precision_recall",
    "probabilities_section",
    "reliability",
]

_MOST_CURVES = 7
_ALL_LABELS = "all labels together"


class PrecisionRecall(NamedTuple):
    """Precision at each recall, from the highest score down, and the average precision."""

    recall: np.ndarray
    precision: np.ndarray
    average_precision: float


class Reliability(NamedTuple):
    """Predicted probabilities and observed frequencies in bins of equal width.

    Arrays with one number per bin (`edges` has one more). `predicted` is the mean probability and
    `observed` the share of positives; both are NaN in an empty bin.
    """

    edges: np.ndarray
    entries: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray


def probabilities_section(evaluated: EvaluatedModel) -> Section:
    """Return the precision-recall curves and the reliability diagram."""
    return Section(
        "Probabilities", [*_precision_recall_blocks(evaluated), *_reliability_blocks(evaluated)]
    )


def _precision_recall_blocks(evaluated: EvaluatedModel) -> list[Block]:
    truth, scores = evaluated.truth, evaluated.probabilities
    together = precision_recall(truth, scores)
    if together is None:
        return [Paragraph("No scored row has a label: there are no precision-recall curves.")]
    curves = {_ALL_LABELS: together}
    chosen = most_frequent(truth, _MOST_CURVES if truth.n_labels > 1 else 0)
    for j in chosen:
        curve = precision_recall(truth[:, [j]], scores[:, [j]])
        if curve is not None:
            curves[truth.names[j]] = curve
    which = f"All labels in one ranking, and the {len(curves) - 1} most frequent labels"
    if len(chosen) in (0, truth.n_labels):
        which = "All labels in one ranking, and each label" if len(chosen) else "The one label"
    values = "; ".join(f"{name}: {curve.average_precision:.2f}" for name, curve in curves.items())
    return [
        Figure(
            "precision-recall",
            draw_precision_recall("precision-recall", curves, together=_ALL_LABELS),
            "Precision and recall",
            f"Average precision of {values}.",
            f"{which}; AP is the average precision. Unknown entries are ignored.",
        )
    ]


def _reliability_blocks(evaluated: EvaluatedModel) -> list[Block]:
    if not evaluated.has_probabilities:
        text = "The scores are not probabilities: there is no reliability diagram."
        return [Paragraph(text)]
    bins = reliability(evaluated.truth, evaluated.probabilities)
    rows = [
        (f"{bins.edges[k]:.2f} to {bins.edges[k + 1]:.2f}", int(n), predicted, observed)
        for k, (n, predicted, observed) in enumerate(
            zip(bins.entries, bins.predicted, bins.observed, strict=True)
        )
    ]
    error = evaluated.scores["ece"]
    return [
        Figure(
            "reliability",
            draw_reliability("reliability", bins),
            "Reliability",
            f"Share of positives against probability in 15 bins; calibration error {error:.4f}.",
            "All labels together. On the dotted line, probabilities equal observed frequencies; "
            "below it the model is overconfident. The lower plot counts the entries per bin.",
        ),
        Table(
            f"The bins of the reliability diagram, {evaluated.rows_description}",
            ("probability", "entries", "mean probability", "share of positives"),
            rows,
            folded=True,
        ),
    ]


def precision_recall(
    Y: LabelMatrix, scores: np.ndarray, *, most_points: int = 200
) -> PrecisionRecall | None:
    """Compute the curve of all known entries in one ranking; None if no entry is positive.

    Entries of equal score are one point. A long curve is reduced to `most_points` points, evenly
    spread over the recall and including both ends; the average precision is that of all points.

    >>> from labelweave.labels import as_labels
    >>> curve = precision_recall(as_labels([[1], [0], [1]]), np.array([[0.9], [0.8], [0.7]]))
    >>> curve.recall, curve.precision.round(2)
    (array([0.5, 0.5, 1. ]), array([1.  , 0.5 , 0.67]))
    """
    ranked = ranked_together(Y, scores)
    if not ranked.positive[0] > 0:
        return None
    has_known = ranked.new_known > 0  # a score of unknown entries only is no point
    recall = ranked.hits[has_known] / ranked.positive[0]
    precision = ranked.hits[has_known] / ranked.known[has_known]
    if len(recall) > most_points:
        places = np.linspace(recall[0], 1.0, most_points - 1)
        kept = np.unique(np.append(np.searchsorted(recall, places), len(recall) - 1))
        recall, precision = recall[kept], precision[kept]
    return PrecisionRecall(recall, precision, float(ranked.average_precision()[0]))


def reliability(Y: LabelMatrix, scores: np.ndarray, n_bins: int = 15) -> Reliability:
    """Compute the bins of :func:`labelweave.metrics.ece` for all labels together.

    >>> from labelweave.labels import as_labels
    >>> bins = reliability(as_labels([[1, 0], [1, 1]]), np.array([[0.9, 0.2], [0.8, 0.9]]), 2)
    >>> bins.entries, bins.predicted.round(3), bins.observed
    (array([1., 3.]), array([0.2  , 0.867]), array([0., 1.]))
    """
    entries, predicted, positive = (
        part.sum(axis=0) for part in calibration_bins(Y, scores, n_bins)
    )
    empty = np.full(n_bins, np.nan)
    return Reliability(
        np.linspace(0, 1, n_bins + 1),
        entries,
        np.divide(predicted, entries, out=empty.copy(), where=entries > 0),
        np.divide(positive, entries, out=empty, where=entries > 0),
    )


def draw_precision_recall(
    name: str, curves: Mapping[str, PrecisionRecall], *, together: str
) -> str:
    """Return a plot of the curves; the one called `together` is drawn with a thick line."""

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        k = 0
        for name, curve in curves.items():
            label = f"{shorten(name)} (AP {curve.average_precision:.2f})"
            if name == together:
                axis.plot(curve.recall, curve.precision, color="black", linewidth=2.6, label=label)
                continue
            every = max(1, len(curve.recall) // 6)
            style = line_style(k)._asdict()
            if k % 7 == 4:  # black is the colour of all labels together
                style["color"] = "#666666"
            axis.plot(
                curve.recall,
                curve.precision,
                label=label,
                linewidth=1.2,
                markevery=(k % every, every),
                **style,
            )
            k += 1
        axis.set(xlabel="recall", ylabel="precision", xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)

    return draw(name, 7.4, 4.0, paint)


def draw_reliability(name: str, bins: Reliability) -> str:
    """Return a plot of observed against predicted frequency, with the entries of each bin."""

    def paint(figure: Any) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        above.plot([0, 1], [0, 1], color="#777777", linewidth=1, linestyle=":", label="calibrated")
        full = bins.entries > 0
        predicted, observed = bins.predicted[full], bins.observed[full]
        above.vlines(predicted, predicted, observed, color="#999999", lw=1)
        above.plot(predicted, observed, label="this model", **line_style(0)._asdict())
        above.set(ylabel="share of positives", ylim=(-0.02, 1.02))
        above.legend(loc="upper left")
        widths = np.diff(bins.edges)
        below.bar(
            bins.edges[:-1] + widths / 2,
            np.where(full, bins.entries, np.nan),
            width=widths * 0.9,
            color="#cccccc",
            edgecolor="#555555",
            linewidth=0.6,
            hatch="////",
        )
        below.set(xlabel="predicted probability", ylabel="entries", xlim=(-0.02, 1.02))
        if bins.entries.max() > 20 * max(np.median(bins.entries[full]), 1):
            log_scale(below, "y")

    return draw(name, 4.8, 5.0, paint)

"""Plots of probabilities against the truth: reliability, precision-recall, thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelweave.reporting.numbers.curves import PrecisionRecall, Reliability, ThresholdEffect
from labelweave.reporting.plots.style import draw, line, log_scale, short

__all__ = ["precision_recall_plot", "reliability_plot", "threshold_plot"]

_METRICS = {
    "f1_example": "example F1",
    "f1_micro": "micro F1",
    "f1_macro": "macro F1",
    "subset_accuracy": "subset accuracy",
}


def reliability_plot(name: str, bins: Reliability) -> str:
    """Promised against real frequency, and how many entries each bin holds."""

    def paint(figure: Any) -> None:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        above.plot([0, 1], [0, 1], color="#777777", linewidth=1, linestyle=":", label="as promised")
        full = bins.entries > 0
        look = line(0)
        above.vlines(
            bins.promised[full], bins.promised[full], bins.happened[full], color="#999999", lw=1
        )
        above.plot(bins.promised[full], bins.happened[full], label="this model", **look._asdict())
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
        below.set(xlabel="probability that the model gives", ylabel="entries", xlim=(-0.02, 1.02))
        if bins.entries.max() > 20 * max(np.median(bins.entries[full]), 1):
            log_scale(below, "y")

    return draw(name, 4.8, 5.0, paint)


def precision_recall_plot(
    name: str, curves: Mapping[str, PrecisionRecall], *, together: str
) -> str:
    """Precision at each recall; the curve called `together` is drawn strongest."""

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        k = 0
        for label, curve in curves.items():
            shown = f"{short(label)} (AP {curve.average_precision:.2f})"
            if label == together:
                axis.plot(curve.recall, curve.precision, color="black", linewidth=2.6, label=shown)
                continue
            every = max(1, len(curve.recall) // 6)
            look = line(k)._asdict() | {"color": line(k).color if k % 7 != 4 else "#666666"}
            axis.plot(
                curve.recall,
                curve.precision,
                label=shown,
                linewidth=1.2,
                markevery=(k % every, every),
                **look,
            )
            k += 1
        axis.set(xlabel="recall", ylabel="precision", xlim=(-0.02, 1.02), ylim=(-0.02, 1.04))
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)

    return draw(name, 7.4, 4.0, paint)


def threshold_plot(
    name: str, effects: Sequence[tuple[str, ThresholdEffect]], *, cut: float | None
) -> str:
    """Metrics at each cut, one plot a part of the rows; `cut` is the model's own."""

    def paint(figure: Any) -> None:
        grid = figure.subplots(
            2, len(effects), sharex=True, sharey="row", squeeze=False, height_ratios=[3, 1]
        )
        for (title, effect), (above, below) in zip(effects, grid.T, strict=True):
            every = max(1, len(effect.cuts) // 8)
            for k, (metric, values) in enumerate(effect.metrics.items()):
                above.plot(
                    effect.cuts,
                    values,
                    label=_METRICS.get(metric, metric),
                    markevery=(2 * k, every),
                    **line(k)._asdict(),
                )
            above.set_title(title)
            below.plot(effect.cuts, effect.labels_a_row, color="black", linewidth=1.4)
            below.axhline(effect.true_labels_a_row, color="#777777", linewidth=1, linestyle="--")
            below.set(xlabel="cut", ylim=(0, max(3 * effect.true_labels_a_row, 1)))
            if cut is not None:
                for axis in (above, below):
                    axis.axvline(cut, color="#555555", linewidth=1, linestyle=(0, (1, 2)))
        grid[0, 0].set_ylabel("score")
        grid[1, 0].set_ylabel("labels\na row")
        grid[0, -1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)

    return draw(name, 3.4 * len(effects) + 1.7, 4.2, paint)

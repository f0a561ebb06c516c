"""Scores of the labels against their frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelweave.reporting.numbers.labels import binned_means
from labelweave.reporting.plots.style import draw, line, log_scale, short

__all__ = ["label_scores_plot"]

_MOST_LINES = 30  # with more labels than this, names have no room
_FEWEST_FOR_TREND = 40
_MOST_VECTORS = 2000  # points that an SVG holds one by one


def label_scores_plot(
    name: str,
    frequency: np.ndarray,
    scores: Mapping[str, np.ndarray],
    labels: Sequence[str],
    *,
    axis_title: str,
) -> str:
    """Few labels: a line each, the most frequent on top. Many: a point a label and score."""
    if len(labels) <= _MOST_LINES:
        return _by_line(name, frequency, scores, labels, axis_title)
    return _by_frequency(name, frequency, scores, axis_title)


def _by_line(
    name: str,
    frequency: np.ndarray,
    scores: Mapping[str, np.ndarray],
    labels: Sequence[str],
    axis_title: str,
) -> str:
    order = np.argsort(frequency, kind="stable")
    table = np.stack(list(scores.values()))[:, order]
    places = np.arange(len(order))

    def paint(figure: Any) -> None:
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=[3, 1])
        some = ~np.isnan(table).all(axis=0)
        low, high = np.nanmin(table[:, some], axis=0), np.nanmax(table[:, some], axis=0)
        left.hlines(places[some], low, high, color="#bbbbbb", linewidth=1)
        for k, (score, values) in enumerate(zip(scores, table, strict=True)):
            left.plot(values, places, label=score, **_hollow(k))
        left.set_yticks(places, [short(labels[j]) for j in order], fontsize=8)
        left.set(xlabel="score", xlim=(-0.02, 1.02), ylim=(-0.6, len(order) - 0.4))
        figure.legend(loc="outside upper left", ncols=len(scores), fontsize=8)
        right.barh(
            places,
            frequency[order],
            height=0.6,
            color="#cccccc",
            edgecolor="#555555",
            linewidth=0.6,
            hatch="////",
        )
        right.set(xlabel=axis_title)
        right.tick_params(axis="y", length=0)

    return draw(name, 7.4, 1.4 + 0.24 * len(labels), paint)


def _by_frequency(
    name: str, frequency: np.ndarray, scores: Mapping[str, np.ndarray], axis_title: str
) -> str:
    def paint(figure: Any) -> None:
        axis = figure.subplots()
        for k, (score, values) in enumerate(scores.items()):
            axis.plot(
                frequency,
                values,
                label=score,
                alpha=0.5,
                rasterized=len(values) > _MOST_VECTORS,
                **_hollow(k) | {"markersize": 3.5},
            )
            if len(values) >= _FEWEST_FOR_TREND:
                look = line(k)
                axis.plot(
                    *binned_means(frequency, values),
                    color=look.color,
                    linestyle=look.linestyle,
                    linewidth=2.2,
                    label=f"{score}, mean of bins",
                )
        log_scale(axis, "x", linthresh=1)
        axis.set(xlabel=axis_title, ylabel="score", ylim=(-0.03, 1.03))
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)

    return draw(name, 7.4, 4.2, paint)


def _hollow(k: int) -> dict[str, Any]:
    """Markers without a line: the first kind filled, the others hollow."""
    look = line(k)
    inside = look.color if k == 0 else "none"
    return {"color": look.color, "marker": look.marker, "linestyle": "", "markerfacecolor": inside}

"""The section on single labels: the scores of each label against its frequency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from labelweave.plotting import draw, line_style, log_scale, shorten
from labelweave.reporting.evaluated_model import EvaluatedModel
from labelweave.reporting.report_content import Block, Figure, Paragraph, Section, Table

__all__ = ["binned_means", "draw_label_scores", "label_scores_section"]

_MOST_TABLE_ROWS = 100
_MOST_NAMED = 30  # there is no room for the names of more labels
_FEWEST_FOR_TREND = 40
_MOST_VECTORS = 2000  # points that are drawn one by one; more become an image


def label_scores_section(evaluated: EvaluatedModel) -> Section:
    """Return a plot and a table of the scores of each label."""
    table = evaluated.scores.per_label()
    frequency, where = table["positives"].to_numpy(), "scored"
    if evaluated.train_labels is not None:
        frequency, _ = evaluated.train_labels.select(evaluated.truth.names).counts()
        where = "training"
    plotted = {
        name: table[column].to_numpy(dtype=float)
        for name, column in (("F1", "f1"), ("average precision", "ap"))
        if column in table
    }
    order = np.argsort(-frequency, kind="stable")[:_MOST_TABLE_ROWS]
    columns = [name for name in table.columns if name != "label"]
    rows = [
        (table["label"][j], int(frequency[j]), *(table[name][j] for name in columns)) for j in order
    ]
    means = ", ".join(
        f"mean {name} {np.nanmean(values):.3f}"
        for name, values in plotted.items()
        if np.isfinite(values).any()
    )
    blocks: list[Block] = [
        Figure(
            "label-scores",
            draw_label_scores(
                "label-scores",
                frequency,
                plotted,
                evaluated.truth.names,
                axis_title=f"positives, {where} rows",
            ),
            "Scores of each label against its frequency",
            f"{len(table)} labels with {frequency.min():,} to {frequency.max():,} "
            f"positives among the {where} rows; {means or 'no score is defined'}.",
            f"One point per label and score, against the label's positives among the {where} rows.",
        )
    ]
    n_absent = int((table["positives"] == 0).sum())
    if n_absent:
        text = f"{n_absent:,} of {len(table):,} labels have no positive among the scored rows: "
        blocks.append(Paragraph(text + "their recall and average precision are undefined."))
    header = ("label", f"{where} positives", *columns)
    shown = "all labels" if len(rows) == len(table) else f"the {len(rows)} most frequent labels"
    caption = f"Scores of {shown}, {evaluated.rows_description}"
    blocks.append(Table(caption, header, rows, folded=len(rows) > 20))
    return Section("Labels", blocks)


def binned_means(
    frequency: np.ndarray, values: np.ndarray, n_bins: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean frequency and mean value of bins of labels of similar frequency.

    The labels with a defined value and at least one positive, sorted by frequency, are split into
    `n_bins` bins of nearly equal size.

    >>> binned_means(np.array([1, 2, 10, 20]), np.array([0.0, 0.2, 0.6, 0.8]), n_bins=2)
    (array([ 1.5, 15. ]), array([0.1, 0.7]))
    """
    usable = np.flatnonzero(~np.isnan(values) & (frequency > 0))
    order = usable[np.argsort(frequency[usable], kind="stable")]
    bins = [part for part in np.array_split(order, n_bins) if len(part)]
    x = np.array([frequency[part].mean() for part in bins])
    return x, np.array([values[part].mean() for part in bins])


def draw_label_scores(
    name: str,
    frequency: np.ndarray,
    scores: Mapping[str, np.ndarray],
    labels: Sequence[str],
    *,
    axis_title: str,
) -> str:
    """Return a plot with one line per label if there are few, else with one point per label."""
    if len(labels) <= _MOST_NAMED:
        return _named_labels(name, frequency, scores, labels, axis_title)
    return _scatter_plot(name, frequency, scores, axis_title)


def _named_labels(
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
        defined = ~np.isnan(table).all(axis=0)
        low, high = np.nanmin(table[:, defined], axis=0), np.nanmax(table[:, defined], axis=0)
        left.hlines(places[defined], low, high, color="#bbbbbb", linewidth=1)
        for k, (score, values) in enumerate(zip(scores, table, strict=True)):
            left.plot(values, places, label=score, **_markers(k))
        left.set_yticks(places, [shorten(labels[j]) for j in order], fontsize=8)
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


def _scatter_plot(
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
                **_markers(k) | {"markersize": 3.5},
            )
            if len(values) >= _FEWEST_FOR_TREND:
                style = line_style(k)
                axis.plot(
                    *binned_means(frequency, values),
                    color=style.color,
                    linestyle=style.linestyle,
                    linewidth=2.2,
                    label=f"{score}, mean of bins",
                )
        log_scale(axis, "x", linthresh=1)
        axis.set(xlabel=axis_title, ylabel="score", ylim=(-0.03, 1.03))
        axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)

    return draw(name, 7.4, 4.2, paint)


def _markers(k: int) -> dict[str, Any]:
    """Return markers without a line; those of the first score are filled."""
    style = line_style(k)
    inside = style.color if k == 0 else "none"
    return {
        "color": style.color,
        "marker": style.marker,
        "linestyle": "",
        "markerfacecolor": inside,
    }

"""The section on what the labels depend on: the importance of columns or words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labelweave.capabilities import capabilities
from labelweave.explaining import FeatureImportance, feature_importance, native_importance
from labelweave.reporting.evaluated_model import EvaluatedModel
from labelweave.reporting.heat_maps import draw_importance, most_frequent
from labelweave.reporting.report_content import Block, Figure, Paragraph, Section, Table

__all__ = ["important_columns_section"]

_N_REPEATS = 3
_MOST_COLUMNS = 50  # that are measured
_MOST_DRAWN = 20
_MOST_NAMED = 5  # columns per label in the table
_FEWEST_ROWS, _MOST_ROWS = 50, 300
_PREDICTIONS = 20_000  # of rows, about


def important_columns_section(evaluated: EvaluatedModel, n_shown: int) -> Section:
    """Return a heat map and a table of the columns or words that matter for each label.

    At most `n_shown` labels are measured, the most frequent ones.
    """
    title = "What the labels depend on"
    rows = evaluated.rows
    if rows.is_image:
        return Section(title, [Paragraph("The importance of pixels is not measured.")])
    truth = evaluated.truth
    labels = [truth.names[j] for j in sorted(most_frequent(truth, n_shown))]
    n_columns = min(_MOST_COLUMNS, rows.n_features or _MOST_COLUMNS)
    n_rows = int(np.clip(_PREDICTIONS // (n_columns * _N_REPEATS), _FEWEST_ROWS, _MOST_ROWS))
    importance = feature_importance(
        evaluated.model,
        rows.X,
        truth,
        n_repeats=_N_REPEATS,
        labels=labels,
        max_rows=n_rows,
        max_columns=_MOST_COLUMNS,
        feature_names=None if rows.is_text else rows.feature_names,
        random_state=0,
    )
    unit = "word" if rows.is_text else "column"
    blocks: list[Block] = [Paragraph(_how_measured(importance, evaluated, unit))]
    if importance.features:
        blocks.append(_figure(importance, unit))
    best = importance.top(_MOST_NAMED)
    assert importance.scores is not None
    table = [
        (label, float(score), _named(best[label]))
        for label, score in zip(importance.labels, importance.scores, strict=True)
    ]
    caption = f"The most important {unit}s of each label, {importance.kind}"
    blocks.append(Table(caption, ("label", "average precision", f"{unit}s"), table))
    if capabilities(evaluated.model).feature_importance:
        blocks.append(_stated(evaluated, labels, unit))
    return Section(title, blocks)


def _how_measured(importance: FeatureImportance, evaluated: EvaluatedModel, unit: str) -> str:
    n_left_out = len(importance.not_measured)
    measured = f"{len(importance.features):,} {unit}s"
    if n_left_out:
        measured += f" (the other {n_left_out:,} change or vary less and were not measured)"
    how = (
        f"each {unit} in turn is left out of the texts"
        if unit == "word"
        else f"the values of each {unit} in turn are permuted among the rows, {_N_REPEATS} times"
    )
    return (
        f"{measured}, measured on {importance.n_rows:,} of {len(evaluated.rows):,} rows: {how}, "
        "and the importance is the drop in the average precision of a label. Of two that say the "
        "same, each looks unimportant."
    )


def _figure(importance: FeatureImportance, unit: str) -> Figure:
    values = np.nan_to_num(importance.values)
    order = np.argsort(-values.max(axis=0), kind="stable")[:_MOST_DRAWN]
    names = [importance.features[j] for j in order]
    shown = importance.values[:, order]
    row, column = np.unravel_index(np.argmax(np.nan_to_num(shown)), shown.shape)
    return Figure(
        "important-columns",
        draw_importance("important-columns", shown, importance.labels, names, unit),
        f"Importance of {unit}s for each label",
        f"Importance of {len(names)} {unit}s for {len(importance.labels)} labels; the largest is "
        f"{shown[row, column]:.3f}, of {names[column]} for {importance.labels[row]}.",
        f"The drop in average precision without the information of a {unit}; empty where a label "
        f"has no positive among the rows. The {unit}s with the largest drop are shown.",
    )


def _stated(evaluated: EvaluatedModel, labels: list[str], unit: str) -> Table:
    """What the model states itself."""
    stated = native_importance(evaluated.model).select_labels(labels)
    names = evaluated.rows.feature_names
    if names is not None and len(names) == len(stated.features):
        stated = replace(stated, features=[str(name) for name in names])
    rows = [(label, _named(best)) for label, best in stated.top(_MOST_NAMED).items()]
    caption = f"What the model states: {stated.kind}"
    return Table(caption, ("label", f"{unit}s"), rows, folded=True)


def _named(features: list[tuple[str, float]]) -> str | None:
    return ", ".join(f"{name} {value:.3f}" for name, value in features) or None

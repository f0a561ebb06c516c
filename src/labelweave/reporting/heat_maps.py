"""Heat maps of labels against labels or columns, and which labels they show in which order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.labels import LabelMatrix
from labelweave.plotting import HEAT, draw, shorten

__all__ = ["HeatMap", "draw_heat_maps", "draw_importance", "most_frequent", "similar_side_by_side"]

_MOST_NUMBERS = 12  # with more labels the numbers in the cells are too small to read


class HeatMap(NamedTuple):
    """Values of one heat map; NaN cells stay empty."""

    title: str
    values: np.ndarray
    scale: tuple[float, float] | None = None


def most_frequent(Y: LabelMatrix, n_labels: int) -> np.ndarray:
    """Return the columns of the labels with the most positives, the most frequent first.

    Labels without a positive are left out, unless no label has one.

    >>> from labelweave.labels import as_labels
    >>> most_frequent(as_labels([[0, 1, 1], [0, 0, 1]]), 5)
    array([2, 1])
    """
    positives, _ = Y.counts()
    order = np.argsort(-positives, kind="stable")
    occurring = order[positives[order] > 0]
    return (occurring if len(occurring) else order)[:n_labels]


def similar_side_by_side(similarity: np.ndarray) -> np.ndarray:
    """Return an order of the labels that puts similar ones side by side.

    The order is that of the leaves of an average-linkage clustering of the symmetric similarity,
    arranged so that neighbours are as similar as possible. The diagonal and NaN are ignored.

    >>> similarity = np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.1], [0.9, 0.1, 1.0]])
    >>> order = similar_side_by_side(similarity).tolist()
    >>> abs(order.index(0) - order.index(2))
    1
    """
    n = len(similarity)
    if n < 3:
        return np.arange(n)
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    symmetric = np.nan_to_num((similarity + similarity.T) / 2)
    distance = symmetric.max() - symmetric
    np.fill_diagonal(distance, 0.0)
    flat = squareform(distance, checks=False)
    return leaves_list(optimal_leaf_ordering(linkage(flat, "average"), flat))


def draw_heat_maps(
    name: str,
    maps: Sequence[HeatMap],
    labels: Sequence[str],
    *,
    rows: str,
    columns: str,
    unit: str,
) -> str:
    """Return an SVG of heat maps of the same labels, on one scale."""
    n = len(labels)
    size = float(np.clip(1.2 + 0.26 * n, 2.6, 7.0))
    wide = len(maps) > 1 and n <= 16  # side by side as long as they stay readable
    across, down = (len(maps), 1) if wide else (1, len(maps))
    width, height = min(across * (size + 1.0) + 0.8, 10.0), down * (size + 0.8)
    finite = np.concatenate([heat_map.values[np.isfinite(heat_map.values)] for heat_map in maps])
    span = maps[0].scale or ((finite.min(), finite.max()) if len(finite) else (0.0, 1.0))

    def paint(figure: Any) -> None:
        axes = np.ravel(figure.subplots(down, across, squeeze=False))
        for axis, heat_map in zip(axes, maps, strict=True):
            image = axis.imshow(
                heat_map.values, cmap=HEAT, vmin=span[0], vmax=span[1], aspect="equal"
            )
            axis.set_title(heat_map.title)
            _name_cells(axis, labels, labels, rows, columns)
            if n <= _MOST_NUMBERS:
                _write_numbers(axis, heat_map.values, span)
        for group in [list(axes)] if wide else [[axis] for axis in axes]:
            bar = figure.colorbar(image, ax=group, shrink=0.7, label=unit)
            bar.outline.set_visible(False)

    return draw(name, width, height, paint)


def draw_importance(
    name: str, values: np.ndarray, labels: Sequence[str], columns: Sequence[str], unit: str
) -> str:
    """Return an SVG of a heat map with one row per label and one column per column or word."""
    n_rows, n_columns = values.shape
    width = float(np.clip(2.6 + 0.34 * n_columns, 4.0, 9.5))
    height = float(np.clip(1.7 + 0.27 * n_rows, 2.6, 10.0))
    top = np.nanmax(values, initial=0.0)
    span = (0.0, float(top) if top > 0 else 1.0)

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        image = axis.imshow(values, cmap=HEAT, vmin=span[0], vmax=span[1], aspect="auto")
        _name_cells(axis, labels, columns, "label", unit)
        if max(n_rows, n_columns) <= _MOST_NUMBERS:
            _write_numbers(axis, values, span)
        bar = figure.colorbar(image, ax=axis, shrink=0.7, label="drop in average precision")
        bar.outline.set_visible(False)

    return draw(name, width, height, paint)


def _name_cells(
    axis: Any, row_names: Sequence[str], column_names: Sequence[str], rows: str, columns: str
) -> None:
    places, across = np.arange(len(row_names)), np.arange(len(column_names))
    for set_ticks, names, options in (
        (axis.set_xticks, column_names, {"rotation": 90}),
        (axis.set_yticks, row_names, {}),
    ):
        size = 8 if len(names) <= 20 else 7
        shown = [shorten(name) for name in names]
        set_ticks(np.arange(len(names)), shown, fontsize=size, **options)
    axis.set(xlabel=columns, ylabel=rows)
    axis.tick_params(length=0)
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(False)
    # Thin white lines separate neighbouring cells of similar colour.
    axis.hlines(places[1:] - 0.5, -0.5, len(across) - 0.5, color="white", linewidth=0.8)
    axis.vlines(across[1:] - 0.5, -0.5, len(places) - 0.5, color="white", linewidth=0.8)


def _write_numbers(axis: Any, values: np.ndarray, span: tuple[float, float]) -> None:
    middle = (span[0] + span[1]) / 2
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            color = "black" if value > middle else "white"
            axis.text(
                column, row, f"{value:.2f}", ha="center", va="center", fontsize=7, color=color
            )

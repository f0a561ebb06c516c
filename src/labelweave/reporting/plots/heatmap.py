"""Heat maps of labels against labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.reporting.plots.style import HEAT, draw, short

__all__ = ["Heat", "heat_maps"]

_MOST_NUMBERS = 12  # with more labels the numbers in the cells are too small to read


class Heat(NamedTuple):
    """One heat map; nan cells stay empty."""

    title: str
    values: np.ndarray
    scale: tuple[float, float] | None = None


def heat_maps(
    name: str,
    maps: Sequence[Heat],
    labels: Sequence[str],
    *,
    rows: str,
    columns: str,
    unit: str,
    cell_format: str = "{:.2f}",
) -> str:
    """Heat maps of the same labels side by side, on one scale."""
    n = len(labels)
    size = float(np.clip(1.2 + 0.26 * n, 2.6, 7.0))
    wide = len(maps) > 1 and n <= 16  # beside each other where they stay readable
    across, down = (len(maps), 1) if wide else (1, len(maps))
    width, height = min(across * (size + 1.0) + 0.8, 10.0), down * (size + 0.8)
    finite = np.concatenate([heat.values[np.isfinite(heat.values)] for heat in maps])
    span = maps[0].scale or ((finite.min(), finite.max()) if len(finite) else (0.0, 1.0))

    def paint(figure: Any) -> None:
        axes = np.ravel(figure.subplots(down, across, squeeze=False))
        for axis, heat in zip(axes, maps, strict=True):
            image = axis.imshow(heat.values, cmap=HEAT, vmin=span[0], vmax=span[1], aspect="equal")
            axis.set_title(heat.title)
            _name_cells(axis, labels, rows, columns)
            if n <= _MOST_NUMBERS:
                _write_numbers(axis, heat.values, span, cell_format)
        for group in [list(axes)] if wide else [[axis] for axis in axes]:
            bar = figure.colorbar(image, ax=group, shrink=0.7, label=unit)
            bar.outline.set_visible(False)

    return draw(name, width, height, paint)


def _name_cells(axis: Any, labels: Sequence[str], rows: str, columns: str) -> None:
    names = [short(label) for label in labels]
    places = np.arange(len(names))
    size = 8 if len(names) <= 20 else 7
    axis.set_xticks(places, names, rotation=90, fontsize=size)
    axis.set_yticks(places, names, fontsize=size)
    axis.set(xlabel=columns, ylabel=rows)
    axis.tick_params(length=0)
    axis.grid(visible=False)
    for spine in axis.spines.values():
        spine.set_visible(False)
    # Thin white lines tell the cells apart where neighbours are alike.
    ends = (-0.5, len(names) - 0.5)
    axis.hlines(places[1:] - 0.5, *ends, color="white", linewidth=0.8)
    axis.vlines(places[1:] - 0.5, *ends, color="white", linewidth=0.8)


def _write_numbers(
    axis: Any, values: np.ndarray, span: tuple[float, float], cell_format: str
) -> None:
    middle = (span[0] + span[1]) / 2
    for (row, column), value in np.ndenumerate(values):
        if np.isfinite(value):
            axis.text(
                column,
                row,
                cell_format.format(value),
                ha="center",
                va="center",
                fontsize=7,
                color="black" if value > middle else "white",
            )

"""Learning curves of several methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.reporting.plots.style import draw, line, short

__all__ = ["CurvePanel", "method_curves"]

Run = tuple[np.ndarray, np.ndarray]


class CurvePanel(NamedTuple):
    """Curves that share an axis: by name, one run (epochs, values) a seed.

    `looks` numbers the names; the same number is drawn alike in all panels.
    """

    title: str
    curves: Mapping[str, Sequence[Run]]
    looks: Mapping[str, int]


def method_curves(name: str, panels: Sequence[CurvePanel]) -> str:
    """A plot a panel; all seeds of a curve look the same."""
    across = min(2, len(panels))
    down = -(-len(panels) // across)

    def paint(figure: Any) -> None:
        grid = figure.subplots(down, across, squeeze=False)
        for axis, panel in zip(grid.flat, panels, strict=False):
            for curve, runs in panel.curves.items():
                look = line(panel.looks[curve])._asdict()
                for k, (epochs, values) in enumerate(runs):
                    every = max(1, len(epochs) // 6)
                    label = short(curve) if k == 0 else None
                    axis.plot(epochs, values, markevery=every, lw=1.1, label=label, **look)
            axis.set(title=short(panel.title, 50), xlabel="epoch")
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.legend(fontsize=8)
        for axis in list(grid.flat)[len(panels) :]:
            axis.set_axis_off()

    return draw(name, 3.9 * across + 0.6, 2.6 * down + 0.2, paint)

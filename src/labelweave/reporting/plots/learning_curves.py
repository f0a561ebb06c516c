"""How losses and scores move over the epochs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelweave.reporting.numbers.history import Panel
from labelweave.reporting.plots.style import draw, line, log_scale

__all__ = ["learning_curves"]

_WORDS = {"loss": "training", "val_loss": "validation", "lr": "learning rate"}


def learning_curves(
    name: str, panels: Sequence[Panel], *, best: int | None = None, stages: Sequence[int] = ()
) -> str:
    """One plot a panel; `best` is the epoch that was kept, `stages` where later stages begin."""
    across = min(2, len(panels))
    down = -(-len(panels) // across)

    def paint(figure: Any) -> None:
        grid = figure.subplots(down, across, squeeze=False)
        for axis, panel in zip(grid.flat, panels, strict=False):
            _paint_panel(axis, panel)
            if best is not None:
                axis.axvline(best, color="#555555", linewidth=1, linestyle=(0, (1, 2)))
                axis.annotate(
                    "kept",
                    (best, 1),
                    xycoords=("data", "axes fraction"),
                    xytext=(2, -2),
                    textcoords="offset points",
                    va="top",
                    fontsize=7,
                    color="#555555",
                )
            for start in stages:
                axis.axvline(start - 0.5, color="#aaaaaa", linewidth=0.8)
        for axis in list(grid.flat)[len(panels) :]:
            axis.set_axis_off()

    return draw(name, 3.9 * across + 0.6, 2.6 * down + 0.2, paint)


def _paint_panel(axis: Any, panel: Panel) -> None:
    for k, (curve, (epochs, values)) in enumerate(panel.curves.items()):
        look = line(k)
        every = max(1, len(epochs) // 8)
        label = _WORDS.get(curve, curve.removeprefix("val_").removeprefix("test_"))
        axis.plot(epochs, values, label=label, markevery=(k % every, every), **look._asdict())
    every_value = np.concatenate([values for _, values in panel.curves.values()])
    if every_value.min() > 0 and every_value.max() / every_value.min() > 100:
        log_scale(axis, "y")
    axis.set(title=panel.title, xlabel="epoch")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(fontsize=8)

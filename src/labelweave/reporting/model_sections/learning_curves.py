"""The section on training: losses and scores by epoch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.plotting import draw, line_style, log_scale
from labelweave.reporting.evaluated_model import EvaluatedModel
from labelweave.reporting.report_content import Block, Figure, Paragraph, Section, format_value

__all__ = ["HistoryPanel", "draw_learning_curves", "history_panels", "learning_section"]

_NOT_CURVES = ("epoch", "stage", "seconds")
_CURVE_NAMES = {"loss": "training", "val_loss": "validation", "lr": "learning rate"}


class HistoryPanel(NamedTuple):
    """Curves that share an axis, each with its epochs and values."""

    title: str
    curves: dict[str, tuple[np.ndarray, np.ndarray]]


def learning_section(evaluated: EvaluatedModel) -> Section:
    """Return the learning curves of a method that trains in epochs."""
    title = "Learning curves"
    history = getattr(evaluated.method, "history_", None)
    panels = [] if history is None else history_panels(history)
    if history is None or not panels:
        name = type(evaluated.method).__name__
        text = f"{name} does not train in epochs: there are no learning curves."
        return Section(title, [Paragraph(text)])
    stage_starts = _stage_starts(history)
    best = getattr(evaluated.method, "best_epoch_", None)
    if best is not None:  # it is an epoch of the last stage
        best = int(best) + (stage_starts[-1] - 1 if stage_starts else 0)
    n_epochs, seconds = len(history), float(history["seconds"].sum()) if "seconds" in history else 0
    stages = f" in {len(stage_starts) + 1} stages" if stage_starts else ""
    last = ", ".join(
        f"{name} {format_value(float(values[-1]))}"
        for panel in panels
        for name, (_, values) in panel.curves.items()
        if name != "lr"
    )
    kept = "" if best is None else f" The weights of epoch {best} were kept (dotted line)."
    blocks: list[Block] = [
        Paragraph(f"{n_epochs:,} epochs{stages} in {seconds:.1f} s.{kept}"),
        Figure(
            "learning-curves",
            draw_learning_curves("learning-curves", panels, best=best, stage_starts=stage_starts),
            "Learning curves",
            f"{n_epochs} epochs; values of the last one: {last}.",
            "The validation rows were held out of the training; the test rows were not used for "
            "any choice.",
        ),
    ]
    return Section(title, blocks)


def _stage_starts(history: Any) -> list[int]:
    """Return the epochs, counted over all stages, at which the second and later stages begin."""
    if "stage" not in history:
        return []
    stage = list(history["stage"])
    return [k + 1 for k in range(1, len(stage)) if stage[k] != stage[k - 1]]


def history_panels(history: Any) -> list[HistoryPanel]:
    """Sort the columns of a training history into plots of losses, scores and learning rate.

    Epochs are counted over all stages. A loss term that equals the loss, and a constant learning
    rate, are left out.

    >>> history = {"epoch": [1, 2], "loss": [0.9, 0.5], "bce": [0.9, 0.5], "val_map": [0.4, 0.6]}
    >>> [(panel.title, list(panel.curves)) for panel in history_panels(history)]
    [('loss', ['loss']), ('validation scores', ['val_map'])]
    """
    columns = {str(name): history[name] for name in history}
    if not columns or len(columns.get("epoch", ())) == 0:
        return []
    numbers = {
        name: np.asarray(list(values), dtype=np.float64)
        for name, values in columns.items()
        if name not in _NOT_CURVES
    }
    loss, rate = numbers.pop("loss", None), numbers.pop("lr", None)
    panels: dict[str, dict[str, np.ndarray]] = {"loss": {}, "terms of the loss": {}}
    panels |= {"validation scores": {}, "test scores": {}, "learning rate": {}}
    if loss is not None:
        panels["loss"]["loss"] = loss
    for name, values in numbers.items():
        if name == "val_loss":
            panels["loss"][name] = values
        elif name.startswith("val_"):
            panels["validation scores"][name] = values
        elif name.startswith("test_"):
            panels["test scores"][name] = values
        elif loss is None or not np.array_equal(values, loss, equal_nan=True):
            panels["terms of the loss"][name] = values
    if rate is not None and len(np.unique(rate[~np.isnan(rate)])) > 1:
        panels["learning rate"]["lr"] = rate
    return [
        HistoryPanel(title, {name: _defined(values) for name, values in curves.items()})
        for title, curves in panels.items()
        if any(np.isfinite(values).any() for values in curves.values())
    ]


def _defined(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept = np.flatnonzero(np.isfinite(values))
    return kept + 1, values[kept]


def draw_learning_curves(
    name: str,
    panels: Sequence[HistoryPanel],
    *,
    best: int | None = None,
    stage_starts: Sequence[int] = (),
) -> str:
    """Return one plot per panel; `best` is the epoch whose weights were kept."""
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
            for start in stage_starts:
                axis.axvline(start - 0.5, color="#aaaaaa", linewidth=0.8)
        for axis in list(grid.flat)[len(panels) :]:
            axis.set_axis_off()

    return draw(name, 3.9 * across + 0.6, 2.6 * down + 0.2, paint)


def _paint_panel(axis: Any, panel: HistoryPanel) -> None:
    for k, (curve, (epochs, values)) in enumerate(panel.curves.items()):
        every = max(1, len(epochs) // 8)
        label = _CURVE_NAMES.get(curve, curve.removeprefix("val_").removeprefix("test_"))
        style = line_style(k)._asdict()
        axis.plot(epochs, values, label=label, markevery=(k % every, every), **style)
    all_values = np.concatenate([values for _, values in panel.curves.values()])
    if all_values.min() > 0 and all_values.max() / all_values.min() > 100:
        log_scale(axis, "y")
    axis.set(title=panel.title, xlabel="epoch")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.legend(fontsize=8)

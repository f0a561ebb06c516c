"""The section of learning curves of the methods of a suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite
from labelweave.plotting import draw, line_style, shorten
from labelweave.reporting.report_content import Block, Figure, Paragraph, Section, Table, slug
from labelweave.reporting.run_records import condition, of_one_protocol

__all__ = ["CurvePanel", "best_and_last", "curve_panels", "curves_section", "draw_method_curves"]

_MOST_FIGURES = 8
_LOSSES = {"loss": "training", "val_loss": "validation"}
_SCORES = {"val": "validation", "test": "test"}

Curve = tuple[np.ndarray, np.ndarray]


class CurvePanel(NamedTuple):
    """Curves that share an axis: for each name one pair (epochs, values) per seed.

    `styles` numbers the names, so that a method has the same line style in all panels.
    """

    title: str
    curves: Mapping[str, Sequence[Curve]]
    styles: Mapping[str, int]


def curves_section(suite: Suite, records: Sequence[Record]) -> Section | None:
    """Return one figure per data set, or None if no method trains in epochs."""
    trained = [record for record in records if record["history"] and record["error"] is None]
    chosen, protocol = of_one_protocol(trained)
    if not chosen:
        return None
    conditions = list(dict.fromkeys(map(condition, chosen)))
    methods = list(dict.fromkeys(record["method_name"] for record in chosen))
    blocks: list[Block] = []
    if len(conditions) > _MOST_FIGURES:
        text = f"The first {_MOST_FIGURES} of {len(conditions)} data sets and scenarios are shown."
        blocks.append(Paragraph(text))
    for name in conditions[:_MOST_FIGURES]:
        panels = curve_panels([record for record in chosen if condition(record) == name], methods)
        stem = slug(f"curves-{suite.name}-{name}")
        last_values = "; ".join(
            f"{panel.title}: "
            + ", ".join(f"{curve} {seeds[0][1][-1]:.3f}" for curve, seeds in panel.curves.items())
            for panel in panels
        )
        blocks.append(
            Figure(
                stem,
                draw_method_curves(stem, panels),
                f"Learning curves on {name}",
                f"Last values of the first seed: {last_values}.",
                f"Protocol {protocol}; one line per seed. Losses of different methods cannot be "
                "compared, so each has its own plot. No choice is made by test scores.",
            )
        )
        if table := best_and_last(name, panels):
            blocks.append(table)
    return Section("Learning curves", blocks)


def curve_panels(records: Sequence[Record], methods: Sequence[str]) -> list[CurvePanel]:
    """Sort the histories into plots: scores of all methods together, then losses per method."""
    scores: dict[str, dict[str, list[Curve]]] = {}
    losses: dict[str, dict[str, list[Curve]]] = {}
    for record in sorted(records, key=lambda one: (methods.index(one["method_name"]), one["seed"])):
        method = record["method_name"]
        for column, values in (record["history"] or {}).items():
            kind, _, metric = column.partition("_")
            if column in _LOSSES:
                curves = losses.setdefault(f"{method}: loss", {}).setdefault(_LOSSES[column], [])
            elif kind in _SCORES:
                curves = scores.setdefault(f"{_SCORES[kind]} {metric}", {}).setdefault(method, [])
            else:
                continue
            numbers = np.array([np.nan if v is None else v for v in values], dtype=float)
            kept = np.flatnonzero(np.isfinite(numbers))
            if len(kept):
                curves.append((kept + 1, numbers[kept]))
    method_styles = {method: k for k, method in enumerate(methods)}
    loss_styles = {name: k for k, name in enumerate(_LOSSES.values())}
    return [
        CurvePanel(title, {name: seeds for name, seeds in curves.items() if seeds}, styles)
        for group, styles in ((scores, method_styles), (losses, loss_styles))
        for title, curves in group.items()
        if any(curves.values())
    ]


def best_and_last(name: str, panels: Sequence[CurvePanel]) -> Table | None:
    """Compare the best value of each curve of scores with its last, as means over seeds.

    A last value far below the best one means that the method began to learn the training rows
    by heart, with what is wrong in their labels.
    """
    rows = [
        [
            panel.title,
            method,
            float(np.mean([values.max() for _, values in seeds])),
            float(np.mean([epochs[values.argmax()] for epochs, values in seeds])),
            float(np.mean([values[-1] for _, values in seeds])),
        ]
        for panel in panels
        if panel.title.partition(" ")[0] in _SCORES.values()
        for method, seeds in panel.curves.items()
        if seeds
    ]
    caption = f"Best and last values of the curves on {name}, means over seeds"
    return Table(caption, ["curve", "method", "best", "its epoch", "last"], rows) if rows else None


def draw_method_curves(name: str, panels: Sequence[CurvePanel]) -> str:
    """Return one plot per panel; all seeds of a curve have the same style."""
    across = min(2, len(panels))
    down = -(-len(panels) // across)

    def paint(figure: Any) -> None:
        grid = figure.subplots(down, across, squeeze=False)
        for axis, panel in zip(grid.flat, panels, strict=False):
            for curve, seeds in panel.curves.items():
                style = line_style(panel.styles[curve])._asdict()
                for k, (epochs, values) in enumerate(seeds):
                    every = max(1, len(epochs) // 6)
                    label = shorten(curve) if k == 0 else None
                    axis.plot(epochs, values, markevery=every, lw=1.1, label=label, **style)
            axis.set(title=shorten(panel.title, 50), xlabel="epoch")
            axis.xaxis.get_major_locator().set_params(integer=True)
            axis.legend(fontsize=8)
        for axis in list(grid.flat)[len(panels) :]:
            axis.set_axis_off()

    return draw(name, 3.9 * across + 0.6, 2.6 * down + 0.2, paint)

"""Learning curves of the methods of a suite."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from labelweave.bench.storing.records import Record
from labelweave.bench.suite import Suite
from labelweave.reporting.document import Block, Figure, Paragraph, Section, slug
from labelweave.reporting.plots.method_curves import CurvePanel, Run, method_curves
from labelweave.reporting.run.selection import condition, of_one_protocol

__all__ = ["curve_panels", "curves_section"]

_MOST_FIGURES = 8
_LOSSES = {"loss": "training", "val_loss": "validation"}
_SCORES = {"val": "validation", "test": "test"}


def curves_section(suite: Suite, records: Sequence[Record]) -> Section | None:
    """A figure a data set: scores of validation and test rows, and losses, over the epochs."""
    trained = [one for one in records if one["history"] and one["error"] is None]
    chosen, protocol = of_one_protocol(trained)
    if not chosen:
        return None
    conditions = list(dict.fromkeys(map(condition, chosen)))
    methods = list(dict.fromkeys(one["method_name"] for one in chosen))
    blocks: list[Block] = []
    if len(conditions) > _MOST_FIGURES:
        text = f"The first {_MOST_FIGURES} of {len(conditions)} data sets and scenarios are shown."
        blocks.append(Paragraph(text))
    for name in conditions[:_MOST_FIGURES]:
        panels = curve_panels([one for one in chosen if condition(one) == name], methods)
        stem = slug(f"curves-{suite.name}-{name}")
        ends = "; ".join(
            f"{panel.title}: "
            + ", ".join(f"{curve} {runs[0][1][-1]:.3f}" for curve, runs in panel.curves.items())
            for panel in panels
        )
        blocks.append(
            Figure(
                stem,
                method_curves(stem, panels),
                f"Learning curves on {name}",
                f"Last values of the first seed: {ends}.",
                f"Protocol {protocol}; one line a seed. Losses of different methods are different "
                "things, so each has a plot of its own. No choice is made by test scores.",
            )
        )
    return Section("Learning curves", blocks)


def curve_panels(records: Sequence[Record], methods: Sequence[str]) -> list[CurvePanel]:
    """Scores of validation and test rows, method against method, then the losses of each."""
    scores: dict[str, dict[str, list[Run]]] = {}
    losses: dict[str, dict[str, list[Run]]] = {}
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
    looks = {method: k for k, method in enumerate(methods)}
    of_losses = {name: k for k, name in enumerate(_LOSSES.values())}
    return [
        CurvePanel(title, {name: runs for name, runs in curves.items() if runs}, chosen)
        for group, chosen in ((scores, looks), (losses, of_losses))
        for title, curves in group.items()
        if any(curves.values())
    ]

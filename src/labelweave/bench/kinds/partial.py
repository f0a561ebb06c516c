"""Partial labels: positives are hidden from the train and validation rows, not from the test rows.

A method sees unannotated entries as negatives or, with the option ``unannotated = "unknown"``, as
unknown entries, so that only positives are known. With ``annotation = "full"`` no label is hidden:
the upper bound of a table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from labelweave.bench.kinds import check_keys
from labelweave.exceptions import InputError

if TYPE_CHECKING:
    from labelweave.bench.running.fitting import Outcome
    from labelweave.bench.running.plan import Cell
    from labelweave.data import Dataset
    from labelweave.pipeline.data_parts import Parts

__all__ = ["check_options", "check_scenario", "run"]


def check_scenario(settings: Mapping[str, Any]) -> None:
    check_keys(settings, ("hide", "single", "most_rows"), "setting of a partial scenario called")
    if {"hide", "single"} <= settings.keys():
        raise InputError("a partial scenario hides a share of the positives or all but one")


def check_options(options: Mapping[str, Any]) -> None:
    check_keys(options, ("unannotated", "annotation"), "option of a partial method called")
    if options.get("unannotated", "negative") not in ("negative", "unknown"):
        raise InputError("unannotated is 'negative' or 'unknown'")
    if options.get("annotation", "partial") not in ("partial", "full"):
        raise InputError("annotation is 'partial' or 'full'")


def run(cell: Cell, data: Dataset) -> Outcome:
    """Hide positives, then fit and score.

    `hide` is the share of positives that are hidden; `single` keeps one positive per row.
    `most_rows` limits the train and validation rows together, never the test rows.
    """
    from labelweave.bench.running.fitting import fit_and_score, quick_rows

    parts = cell.protocol.parts(quick_rows(cell, data), cell.seed)
    parts = _bounded(parts, cell.scenario.settings.get("most_rows"), cell.seed)
    if cell.options.get("annotation") == "full":
        return fit_and_score(cell, parts)
    hidden = {
        name: _hidden(getattr(parts, name), cell, seed=2 * cell.seed + number)
        for number, name in enumerate(("train", "validation"))
    }
    return fit_and_score(cell, parts._replace(**hidden))


def _bounded(parts: Parts, most_rows: int | None, seed: int) -> Parts:
    """Draw at most `most_rows` train and validation rows, in the same proportion."""
    import numpy as np

    n_rows = len(parts.train) + len(parts.validation)
    if most_rows is None or n_rows <= most_rows:
        return parts
    rng = np.random.default_rng(seed)
    drawn = {
        name: part[np.sort(rng.permutation(len(part))[: len(part) * most_rows // n_rows])]
        for name, part in (("train", parts.train), ("validation", parts.validation))
    }
    return parts._replace(**drawn)


def _hidden(part: Dataset, cell: Cell, *, seed: int) -> Dataset:
    from labelweave.data.scenarios import hide_positives, keep_single_positive

    form = cell.options.get("unannotated", "negative")
    how: dict[str, Any] = {"as_": form, "random_state": seed}
    how["negatives"] = "unknown" if form == "unknown" else "known"
    settings = cell.scenario.settings
    if settings.get("single"):
        return replace(part, Y=keep_single_positive(part.Y, **how).Y)
    return replace(part, Y=hide_positives(part.Y, settings.get("hide", 0.0), **how).Y)

"""Partial labels: positives are hidden from all rows but the test rows.

All methods are fitted to the same rows, train and validation rows together. A method that stops
early holds its validation rows out of them; a method that chooses nothing learns from all.

A method sees unannotated entries as negatives or, with the option ``unannotated = "unknown"``, as
unknown entries, so that only positives are known. In data with blanks, hidden positives become
blanks like the others, and zeros are checked negatives. With ``annotation = "full"`` no label is
hidden: the upper bound of a table. ``tau_h = "true"`` gives CLS the true share of missing
positives, which nobody knows outside of an experiment, and ``tau_h = "published"`` that of the
paper.
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
    from labelweave.labels import LabelMatrix


def check_scenario(settings: Mapping[str, Any]) -> None:
    check_keys(settings, ("hide", "single", "most_rows"), "setting of a partial scenario called")
    if {"hide", "single"} <= settings.keys():
        raise InputError("a partial scenario hides a share of the positives or all but one")


def check_options(options: Mapping[str, Any]) -> None:
    known = ("unannotated", "annotation", "tau_h")
    check_keys(options, known, "option of a partial method called")
    if options.get("unannotated", "negative") not in ("negative", "unknown"):
        raise InputError("unannotated is 'negative' or 'unknown'")
    if options.get("annotation", "partial") not in ("partial", "full"):
        raise InputError("annotation is 'partial' or 'full'")
    if options.get("tau_h", "true") not in ("true", "published"):
        raise InputError("tau_h is 'true' or 'published'")


def run(cell: Cell, data: Dataset) -> Outcome:
    """Hide positives, then fit and score.

    `hide` is the share of positives that are hidden; `single` keeps one positive per row.
    `most_rows` limits the rows that methods are fitted to, never the test rows.
    """
    from labelweave.bench.running.fitting import fit_and_score, quick_rows, random_rows
    from labelweave.pipeline.data_parts import Parts

    protocol = cell.protocol
    if protocol.threshold == "validation":
        raise InputError(
            "the validation rows of partial labels are no rows to tune a threshold on: the "
            "threshold of the protocol is 'cardinality' or a number"
        )
    complete, test = quick_rows(cell, data).split(
        test_size=protocol.test_size, method=protocol.split, random_state=cell.seed
    )
    complete = random_rows(complete, cell.scenario.settings.get("most_rows"), cell.seed)
    full = cell.options.get("annotation") == "full"
    train = complete if full else _hidden(complete, cell)
    if "tau_h" in cell.options:
        tau_h = _tau_h(cell, train.Y, complete.Y)
        cell = replace(cell, settings={**cell.settings, "tau_h": tau_h})
    return fit_and_score(cell, Parts(train, train[:0], test))


def _hidden(data: Dataset, cell: Cell) -> Dataset:
    from labelweave.data.scenarios import hide_positives, keep_single_positive

    form = cell.options.get("unannotated", "negative")
    has_blanks = data.Y.has_unknown
    how: dict[str, Any] = {"as_": "unknown" if has_blanks else form, "random_state": cell.seed}
    how["negatives"] = "unknown" if form == "unknown" and not has_blanks else "known"
    settings = cell.scenario.settings
    if settings.get("single"):
        return replace(data, Y=keep_single_positive(data.Y, **how).Y)
    return replace(data, Y=hide_positives(data.Y, settings.get("hide", 0.0), **how).Y)


def _tau_h(cell: Cell, observed: LabelMatrix, complete: LabelMatrix) -> float | str:
    """The true share of missing positives among the unannotated entries, or the paper's rate."""
    if cell.options["tau_h"] == "true":
        hidden = complete.positive().sum() - observed.positive().sum()
        n_zero = observed.counts()[1].sum() - observed.positive().sum()
        return float(hidden / (observed.n_unknown or n_zero))
    from labelweave.methods import get_class

    settings = cell.scenario.settings
    annotated = "single" if settings.get("single") else f"{1 - settings.get('hide', 0.0):.0%}"
    cls: Any = get_class(cell.method)
    return cls.published(cell.data.source, annotated=annotated).tau_h

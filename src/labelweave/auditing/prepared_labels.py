"""The labels of an audit: which entries are unannotated, and what earlier reviews decided."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelweave.data import Dataset
from labelweave.data.corrections import (
    Verdicts,
    apply_corrections,
    observed_labels,
    read_verdicts,
)
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.unannotated import as_observed, unannotated_rule

__all__ = ["PreparedLabels", "prepare_labels"]


class PreparedLabels(NamedTuple):
    """The data with all verdicts applied."""

    data: Dataset
    # The labels coded by :func:`labelweave.unannotated.as_observed`. A verdict "no" is a known
    # negative under either rule.
    observed: LabelMatrix
    rule: str  # {"zeros", "unknown"}: Which entries are unannotated
    reviewed: np.ndarray  # Flat positions of the entries that have a verdict, also "unsure"
    # The entries that were unannotated until a verdict decided them; None without verdicts
    newly_decided: np.ndarray | None


def prepare_labels(data: Dataset, corrections: Any, unannotated: str) -> PreparedLabels:
    """Apply the verdicts of earlier reviews and code the labels.

    * `unannotated`: "auto" is decided by the labels before the verdicts.
    """
    rule = unannotated_rule(data.Y, unannotated)
    before = as_observed(data.Y, rule)
    if corrections is None:
        prepared = PreparedLabels(data, before, rule, np.empty(0, dtype=np.int64), None)
    else:
        verdicts = corrections if isinstance(corrections, Verdicts) else read_verdicts(corrections)
        prepared = _apply_verdicts(data, before, rule, verdicts)
    if not (prepared.observed.to_numpy() == 1).any():
        raise InputError(
            f"{data.name} has no annotated positive to learn from: are positives written as 1?"
        )
    return prepared


def _apply_verdicts(
    data: Dataset, before: LabelMatrix, rule: str, verdicts: Verdicts
) -> PreparedLabels:
    rows, columns, verdict = verdicts.entries(data)
    decided = np.zeros(before.shape, dtype=bool)
    decided[rows, columns] = verdict != "unsure"
    return PreparedLabels(
        apply_corrections(data, verdicts),
        observed_labels(data, verdicts, rule),
        rule,
        rows * data.Y.n_labels + columns,
        decided & (before.to_numpy() == 0),
    )

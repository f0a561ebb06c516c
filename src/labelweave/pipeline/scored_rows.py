"""Which rows a saved model is scored on, and what the score is worth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.pipeline.model_folder import Origin

__all__ = ["ScoredRows", "rows_to_score", "verdict_on"]


class ScoredRows(NamedTuple):
    """Rows to score and, in words, which they are.

    `train_labels` and `validation` are those of the training where the data are its own.
    """

    rows: Dataset
    how: str
    train_labels: LabelMatrix | None = None
    validation: Dataset | None = None


def rows_to_score(
    data: Dataset,
    part: str | None,
    origin: Origin,
    reading: Mapping[str, Any],
    divide_by: LabelMatrix | None = None,
) -> ScoredRows:
    """The part that was asked for; without one the test part where there is such, else all.

    `divide_by` are the labels before corrections, where `data` have been corrected.
    """
    wanted = part or "test"
    if origin.protocol is not None and origin.is_trained_on(data):
        parts = origin.protocol.parts(data, reading, divide_by)
        if part == "all":
            return ScoredRows(data, "all rows", parts.train.Y, parts.validation)
        rows, how = getattr(parts, wanted), f"{wanted} part, as in its training"
        return ScoredRows(rows, how, parts.train.Y, parts.validation)
    if part == "all":
        return ScoredRows(data, "all rows")
    official = None if data.part is None else np.asarray(data.part)
    if official is not None and (official == wanted).any():
        return ScoredRows(data[official == wanted], f"official {wanted} part")
    if part is not None:
        raise InputError(f"{data.name} has no {part} part here: score --part all")
    return ScoredRows(data, "all rows")


def verdict_on(seen: int | None, n_rows: int) -> str:
    """What scores are worth on rows of which the model has seen so many."""
    if seen is None:
        return "the folder does not tell which rows the model was trained on"
    if seen == 0:
        return "the model has seen none of them"
    share = "all" if seen == n_rows else f"{seen:,}"
    return (
        f"{share} of them are equal to rows that trained or tuned the model, "
        "so the scores are too good"
    )

"""Complete labels: fit to the train part, or to a share of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from labelweave.bench.kinds import check_keys

if TYPE_CHECKING:
    from labelweave.bench.running.fitting import Outcome
    from labelweave.bench.running.plan import Cell
    from labelweave.data import Dataset


def check_scenario(settings: Mapping[str, Any]) -> None:
    check_keys(settings, ("train_share",), "setting of a supervised scenario called")


def check_options(options: Mapping[str, Any]) -> None:
    check_keys(options, (), "option of a supervised method called")


def run(cell: Cell, data: Dataset) -> Outcome:
    """Fit and score; `train_share` is the share of train rows to keep, drawn at random."""
    import numpy as np

    from labelweave.bench.running.fitting import fit_and_score, quick_rows
    from labelweave.data.splits import random_holdout

    parts = cell.protocol.parts(quick_rows(cell, data), cell.seed)
    share = cell.scenario.settings.get("train_share", 1.0)
    if share < 1:
        _, kept = random_holdout(len(parts.train), share, random_state=cell.seed)
        parts = parts._replace(train=parts.train[np.sort(kept)])
    return fit_and_score(cell, parts)

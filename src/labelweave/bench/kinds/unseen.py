"""Unseen labels: random labels are held out of the train and validation rows.

The seed decides which labels are held out. ``rank = "unseen"`` scores the ranking of the unseen
labels alone, on the test rows that have one; ``rank = "all"`` that of all labels, on all test
rows. ``train_rows`` and ``test_rows`` limit the official train and test rows, to the same rows for
every seed, so that texts are embedded once for all cells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from labelweave.bench.kinds import check_keys
from labelweave.exceptions import InputError

if TYPE_CHECKING:
    from labelweave.bench.running.fitting import Outcome
    from labelweave.bench.running.plan import Cell
    from labelweave.data import Dataset

RANKED = ("unseen", "all")
_CAPS = ("train_rows", "test_rows")
_ROWS_SEED = 0  # of the drawn rows, whatever the seed of the cell


def check_scenario(settings: Mapping[str, Any]) -> None:
    check_keys(settings, ("unseen", "rank", *_CAPS), "setting of an unseen scenario called")
    if "unseen" not in settings:
        raise InputError("an unseen scenario says how many labels are unseen")
    if settings.get("rank", "unseen") not in RANKED:
        raise InputError(f"rank is one of {', '.join(RANKED)}, not {settings['rank']!r}")
    caps = [settings[name] for name in _CAPS if name in settings]
    if caps and not (len(caps) == 2 and all(isinstance(n, int) and n > 0 for n in caps)):
        raise InputError("train_rows and test_rows are two numbers of rows, or both are left out")


def check_options(options: Mapping[str, Any]) -> None:
    check_keys(options, (), "option of a method for unseen labels called")


def run(cell: Cell, data: Dataset) -> Outcome:
    """Hold labels out, fit and score; `unseen` is their number or share."""
    from labelweave.bench.evaluation_protocol import PANEL
    from labelweave.bench.running.cell_scores import score_test_rows
    from labelweave.bench.running.fitting import Outcome, fit, quick_rows
    from labelweave.data.scenarios import hold_labels_out
    from labelweave.metrics import get_metric
    from labelweave.pipeline.data_parts import Parts

    settings = cell.scenario.settings
    kept = quick_rows(cell, capped_rows(data, *(settings.get(name) for name in _CAPS)))
    parts = cell.protocol.parts(kept, cell.seed)
    if len(kept) < len(data):  # few rows have few of the labels
        there = parts.test.Y.counts()[0] > 0
        names = [name for name, is_there in zip(data.label_names, there, strict=True) if is_there]
        parts = Parts(*(part.select_labels(names) for part in parts))
    held = hold_labels_out(parts.train, parts.test, settings["unseen"], random_state=cell.seed)
    validation = parts.validation.select_labels(held.seen)
    model, seconds = fit(cell, Parts(held.train, validation, held.test))
    if not hasattr(model, "add_labels"):
        raise InputError(f"{cell.method} cannot predict labels without examples")
    texts = data.Y.descriptions
    model.add_labels(held.unseen, {name: texts[name] for name in held.unseen if name in texts})
    test = held.test_unseen if settings.get("rank", "unseen") == "unseen" else held.test
    scores = model.predict_proba(test.X)[:, _columns(model, test)]
    # Label sets would need a threshold for unseen labels: only rankings are scored.
    metrics = [name for name in (*PANEL, *cell.metrics) if get_metric(name).needs == "score"]
    ranked, _ = score_test_rows(
        cell.protocol, (test.Y, scores), (test.Y, scores), metrics, train_labels=None
    )
    rows = {"train": len(held.train), "validation": len(validation), "test": len(test)}
    return Outcome(rows, ranked, {}, seconds)


def capped_rows(data: Dataset, train_rows: int | None, test_rows: int | None) -> Dataset:
    """Limit the train and test rows; without an official split, their sum."""
    if train_rows is None or test_rows is None:
        return data
    order = np.random.default_rng(_ROWS_SEED).permutation(len(data))
    if data.part is None:
        return data[np.sort(order[: train_rows + test_rows])]
    is_test = np.asarray(data.part)[order] == "test"
    kept = np.concatenate([order[~is_test][:train_rows], order[is_test][:test_rows]])
    return data[np.sort(kept)]


def _columns(model: Any, test: Dataset) -> list[int]:
    place = {name: j for j, name in enumerate(model.label_names_)}
    return [place[name] for name in test.label_names]

"""The columns of a training history, sorted into plots."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["Panel", "history_panels"]

_NOT_CURVES = ("epoch", "stage", "seconds")


class Panel(NamedTuple):
    """Curves that share an axis, each with its epochs and values."""

    title: str
    curves: dict[str, tuple[np.ndarray, np.ndarray]]


def history_panels(history: Any) -> list[Panel]:
    """Loss, its terms, validation and test scores, learning rate: as far as they are there.

    Epochs of later stages are counted on from those before. A term that equals the loss, and a
    learning rate that never moves, are left out.

    Parameters
    ----------
    history : DataFrame or mapping of column to list

    Examples
    --------
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
        Panel(title, {name: _defined(values) for name, values in curves.items()})
        for title, curves in panels.items()
        if any(np.isfinite(values).any() for values in curves.values())
    ]


def _defined(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kept = np.flatnonzero(np.isfinite(values))
    return kept + 1, values[kept]

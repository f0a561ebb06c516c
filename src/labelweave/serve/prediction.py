"""From probabilities to the labels of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from labelweave.exceptions import InputError
from labelweave.serve.loaded import Scores
from labelweave.thresholds import FixedThreshold

__all__ = ["choose_labels"]


def choose_labels(
    found: Scores,
    *,
    known: np.ndarray | None = None,
    threshold: float | None = None,
    top_k: int | None = None,
    labels: Sequence[str] | None = None,
    scores: bool = False,
) -> list[dict[str, Any]]:
    """The labels of each row, best first.

    Parameters
    ----------
    found : Scores
    known : ndarray, optional
        1 and 0 where a label is known, which it then stays whatever the threshold.
    threshold : float, optional
        In place of the model's rule.
    top_k : int, optional
        The k best, whatever their scores; with a threshold those of them that reach it.
    labels : sequence of str, optional
        The labels to consider.
    scores : bool, default=False
        Add all scores.

    Examples
    --------
    >>> found = Scores(np.array([[0.2, 0.9, 0.6]]), np.array(["a", "b", "c"]), FixedThreshold(0.5))
    >>> choose_labels(found)
    [{'labels': [{'label': 'b', 'score': 0.9}, {'label': 'c', 'score': 0.6}]}]
    >>> choose_labels(found, top_k=1, labels=["a", "c"])
    [{'labels': [{'label': 'c', 'score': 0.6}]}]
    """
    P = found.probabilities
    if threshold is not None:
        chosen = FixedThreshold(threshold).apply(P).astype(bool)
    elif top_k is not None:
        chosen = np.ones(P.shape, dtype=bool)
    else:
        chosen = found.rule.apply(P).astype(bool)
    if known is not None and known.shape == P.shape:
        chosen = np.where(np.isnan(known), chosen, known == 1)
    names = found.names
    if labels is not None:
        columns = _columns(names, labels)
        P, chosen, names = P[:, columns], chosen[:, columns], names[columns]
    order = np.argsort(-P, axis=1, kind="stable")
    if top_k is not None:
        np.put_along_axis(chosen, order[:, top_k:], False, axis=1)
    return [
        _answer(row, best, picked, names, scores)
        for row, best, picked in zip(P, order, chosen, strict=True)
    ]


def _answer(
    row: np.ndarray, best: np.ndarray, picked: np.ndarray, names: np.ndarray, scores: bool
) -> dict[str, Any]:
    answer = {"labels": _scored(row, best[picked[best]], names)}
    if scores:
        answer["scores"] = _scored(row, best, names)
    return answer


def _scored(row: np.ndarray, places: np.ndarray, names: np.ndarray) -> list[dict[str, Any]]:
    return [
        {"label": name, "score": score}
        for name, score in zip(
            names[places].tolist(), row[places].astype(np.float64).round(6).tolist(), strict=True
        )
    ]


def _columns(names: np.ndarray, labels: Sequence[str]) -> list[int]:
    position = {name: j for j, name in enumerate(names.tolist())}
    if strange := [label for label in labels if label not in position]:
        raise InputError(f"labels: the model has no label {strange[0][:80]!r}")
    return [position[label] for label in dict.fromkeys(labels)]

"""From probabilities to the labels of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from labelweave.exceptions import InputError
from labelweave.thresholds import FixedThreshold

__all__ = ["Choice", "Scores", "choose_labels"]


class Scores(NamedTuple):
    """Probabilities of rows, the names of the columns, and the model's rule."""

    probabilities: np.ndarray
    names: np.ndarray
    rule: Any


class Choice(NamedTuple):
    """Which labels a request wants.

    Attributes
    ----------
    threshold : float, optional
        In place of the model's rule.
    top_k : int, optional
        The k best, whatever their scores; with a threshold those of them that reach it.
    labels : sequence of str, optional
        The labels to consider.
    scores : bool, default=False
        Add all scores.
    """

    threshold: float | None = None
    top_k: int | None = None
    labels: Sequence[str] | None = None
    scores: bool = False


def choose_labels(
    found: Scores, choice: Choice, known: np.ndarray | None = None
) -> list[dict[str, Any]]:
    """The labels of each row, best first.

    All rows are worked on at once, so that requests with the same choice cost little together.

    Parameters
    ----------
    found : Scores
    choice : Choice
    known : ndarray, optional
        1 and 0 where a label is known, which it then stays whatever the threshold.

    Examples
    --------
    >>> found = Scores(np.array([[0.2, 0.9, 0.6]]), np.array(["a", "b", "c"]), FixedThreshold(0.5))
    >>> choose_labels(found, Choice())
    [{'labels': [{'label': 'b', 'score': 0.9}, {'label': 'c', 'score': 0.6}]}]
    >>> choose_labels(found, Choice(top_k=1, labels=["a", "c"]))
    [{'labels': [{'label': 'c', 'score': 0.6}]}]
    """
    P, names = found.probabilities, found.names
    if choice.threshold is not None:
        chosen = FixedThreshold(choice.threshold).apply(P).astype(bool)
    elif choice.top_k is not None:
        chosen = np.ones(P.shape, dtype=bool)
    else:
        chosen = found.rule.apply(P).astype(bool)
    if known is not None:
        chosen = np.where(np.isnan(known), chosen, known == 1)
    if choice.labels is not None:
        columns = _columns(names, choice.labels)
        P, chosen, names = P[:, columns], chosen[:, columns], names[columns]
    if choice.top_k is not None:
        order = np.argsort(-P, axis=1, kind="stable")
        np.put_along_axis(chosen, order[:, choice.top_k :], False, axis=1)
    picked = _ranked(P, chosen, names)
    if not choice.scores:
        return [{"labels": row} for row in picked]
    every = _ranked(P, np.ones(P.shape, dtype=bool), names)
    return [{"labels": row, "scores": scores} for row, scores in zip(picked, every, strict=True)]


def _ranked(P: np.ndarray, chosen: np.ndarray, names: np.ndarray) -> list[list[dict[str, Any]]]:
    """The chosen labels of each row with their scores, best first."""
    rows, columns = np.nonzero(chosen)
    scores = P[rows, columns].astype(np.float64)
    order = np.lexsort((-scores, rows))  # equal scores stay in the model's order
    labels = [
        {"label": name, "score": score}
        for name, score in zip(
            names[columns[order]].tolist(), scores[order].round(6).tolist(), strict=True
        )
    ]
    ends = np.cumsum(np.bincount(rows, minlength=len(P))).tolist()
    return [labels[first:last] for first, last in zip([0, *ends], ends, strict=False)]


def _columns(names: np.ndarray, labels: Sequence[str]) -> list[int]:
    position = {name: j for j, name in enumerate(names.tolist())}
    if strange := [label for label in labels if label not in position]:
        raise InputError(f"labels: the model has no label {strange[0][:80]!r}")
    return [position[label] for label in dict.fromkeys(labels)]

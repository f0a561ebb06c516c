"""Rows to show: label sets that are right, and sets that are wrong."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from labelweave.labels import LabelMatrix

__all__ = ["Chosen", "Example", "choose_examples", "describe_rows"]


class Chosen(NamedTuple):
    """Numbers of rows: right and wrong ones, spread over the rows, and the surest mistakes."""

    right: np.ndarray
    wrong: np.ndarray
    surest: np.ndarray
    n_right: int
    n_wrong: int


class Example(NamedTuple):
    """The label sets of one row, by name."""

    row: int
    found: list[str]
    missed: list[str]
    added: list[str]
    unknown: list[str]


def choose_examples(
    Y: LabelMatrix, predicted: np.ndarray, scores: np.ndarray, n_rows: int = 6
) -> Chosen:
    """Rows to show. A row is right if all its known entries are.

    Right rows that have a label come first. The surest mistakes are the rows with the highest
    score of a label they have not, or the lowest of one they have.

    >>> from labelweave.labels import as_labels
    >>> Y, P = as_labels([[1, 0], [0, 1], [0, 0]]), np.array([[1, 0], [1, 0], [1, 0]])
    >>> chosen = choose_examples(Y, P, np.array([[0.9, 0.1], [0.9, 0.3], [0.6, 0.2]]), 1)
    >>> chosen.right, chosen.wrong, chosen.surest
    (array([0]), array([1]), array([1]))
    """
    values, guess = Y.to_numpy(), np.asarray(predicted).astype(bool)
    wrong = ((values == 1) & ~guess) | ((values == 0) & guess)
    is_wrong, judged = wrong.any(axis=1), ~np.isnan(values).all(axis=1)
    right_rows = np.flatnonzero(~is_wrong & judged)
    labelled = right_rows[(values[right_rows] == 1).any(axis=1)]
    wrong_rows = np.flatnonzero(is_wrong)
    regret = np.where(wrong, np.abs(values - scores), -np.inf).max(axis=1, initial=-np.inf)
    surest = wrong_rows[np.argsort(-regret[wrong_rows], kind="stable")[:n_rows]]
    return Chosen(
        _spread(labelled if len(labelled) else right_rows, n_rows),
        _spread(wrong_rows, n_rows),
        surest,
        len(right_rows),
        len(wrong_rows),
    )


def describe_rows(Y: LabelMatrix, predicted: np.ndarray, rows: np.ndarray) -> list[Example]:
    """Label names of each of these rows: found, missed, wrongly added, predicted but unknown."""
    values, guess = Y[rows].to_numpy(), np.asarray(predicted)[rows].astype(bool)
    names = np.asarray(Y.names, dtype=object)
    return [
        Example(
            int(row),
            names[(value == 1) & chosen].tolist(),
            names[(value == 1) & ~chosen].tolist(),
            names[(value == 0) & chosen].tolist(),
            names[np.isnan(value) & chosen].tolist(),
        )
        for row, value, chosen in zip(rows, values, guess, strict=True)
    ]


def _spread(rows: np.ndarray, n_rows: int) -> np.ndarray:
    """So many of the rows, evenly spread."""
    if len(rows) <= n_rows:
        return rows
    return rows[np.linspace(0, len(rows) - 1, num=n_rows).astype(int)]

"""Ridge regression of each label on the other labels of its row and on scores or features.

A linear autoencoder with zero diagonal (H. Steck, "Embarrassingly Shallow Autoencoders for Sparse
Data", WWW 2019), here with side information. No label is regressed on itself; one matrix inverse
yields the regressions of all labels.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

__all__ = ["label_regression", "regression_on_labels", "regression_on_rows", "rows_share_labels"]

_RIDGE_LABELS, _RIDGE_SCORES, _RIDGE_ROWS = 20.0, 100.0, 5.0
_MOST_LABELS = 2000  # that others are regressed on: the matrix to invert has twice as many rows
_MIN_SHARE_WITH_TWO, _MIN_ROWS = 0.1, 5  # share of the annotated rows, and rows


def label_regression(positive: np.ndarray, logits: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Regress each label on the other labels of its row and on all scores, out of fold.

    `positive` marks the annotated positives, (n_rows, n_labels), and `logits` has the same shape.
    The rows of each `fold` are predicted by the regression of the others.
    """
    frequent = _most_frequent(positive.sum(axis=0))
    scale = logits.std(axis=0) + 1e-9
    side = (logits[:, frequent] - logits.mean(axis=0)[frequent]) / scale[frequent]
    return _out_of_fold(positive, frequent, side, _RIDGE_SCORES, fold)


def regression_on_rows(positive: np.ndarray, rows: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Regress each label on the other labels of its row and on the row's features, out of fold.

    `rows` are features of length one, a few hundred at most: all are in the matrix to invert. The
    other parameters are those of :func:`label_regression`.
    """
    frequent = _most_frequent(positive.sum(axis=0))
    return _out_of_fold(positive, frequent, rows - rows.mean(axis=0), _RIDGE_ROWS, fold)


def _out_of_fold(
    positive: np.ndarray,
    frequent: np.ndarray,
    side: np.ndarray,
    ridge_side: float,
    fold: np.ndarray,
) -> np.ndarray:
    """Regress each label on the other frequent labels and on `side`, on the rows of other folds."""
    labels = positive.astype(np.float64)
    n = len(frequent)
    ridge = np.repeat([_RIDGE_LABELS, ridge_side], [n, side.shape[1]])
    predicted = np.empty(labels.shape, dtype=np.float32)
    for number in np.unique(fold):
        held = fold == number
        rest = ~held if (~held).any() else held
        mean = labels[rest].mean(axis=0)
        centred = labels - mean
        design = np.hstack([centred[:, frequent], side])
        inverse = np.linalg.inv(design[rest].T @ design[rest] + np.diag(ridge))
        weights = inverse @ (design[rest].T @ centred[rest])
        weights[:, frequent] = _weights_on_others(inverse, n)
        predicted[held] = design[held] @ weights + mean
    return predicted


def regression_on_labels(positive: sp.csr_array, fitted: np.ndarray) -> np.ndarray:
    """Regress each label on the other labels of its row alone, fitted to the rows of `fitted`.

    >>> always_together = sp.csr_array(np.tile([[1, 1], [0, 0]], (500, 1)).astype(bool))
    >>> regression_on_labels(always_together, np.ones(1000, bool))[:2].round(1)
    array([[1., 1.],
           [0., 0.]], dtype=float32)
    """
    labels = sp.csr_array(positive, dtype=np.float32)
    rest = labels[np.flatnonzero(fitted)]
    mean = np.asarray(rest.mean(axis=0), dtype=np.float32).ravel()
    frequent = _most_frequent(mean)
    n = len(frequent)
    predictors = rest[:, frequent]
    # Sums of products of centred labels, from the products of the labels themselves.
    both = (predictors.T @ rest).toarray() - rest.shape[0] * np.outer(mean[frequent], mean)
    ridge = np.diag(np.full(n, _RIDGE_LABELS, dtype=np.float32))
    inverse = np.linalg.inv(both[:, frequent] + ridge)
    weights = inverse @ both
    weights[:, frequent] = _weights_on_others(inverse, n)
    return labels[:, frequent] @ weights + (mean - mean[frequent] @ weights)


def rows_share_labels(n_annotated: np.ndarray) -> bool:
    """Whether enough rows have two annotated labels to learn dependencies between labels.

    If few rows have (one label per row is a common scenario), another label of the row is only
    evidence that this label was not chosen for annotation.

    >>> rows_share_labels(np.array([1, 1, 1, 1, 1, 1, 0, 2]))
    False
    """
    enough = max(_MIN_SHARE_WITH_TWO * np.count_nonzero(n_annotated), _MIN_ROWS)
    return bool(np.count_nonzero(n_annotated > 1) >= enough)


def _most_frequent(frequency: np.ndarray) -> np.ndarray:
    """Return the labels that others are regressed on, in ascending order."""
    return np.sort(np.argsort(-frequency, kind="stable")[:_MOST_LABELS])


def _weights_on_others(inverse: np.ndarray, n: int) -> np.ndarray:
    """Regress each of the first n variables on all others, from the inverse of the sums.

    The weights are a column of the inverse divided by its diagonal element.
    """
    weights = -inverse[:, :n] / np.diag(inverse)[:n]
    weights[np.arange(n), np.arange(n)] = 0
    return weights

"""Each label regressed on the other labels of its row and on scores, all in one matrix inverse.

A linear autoencoder with zero diagonal (H. Steck, "Embarrassingly Shallow Autoencoders for Sparse
Data", WWW 2019), here with side information: no label is regressed on itself.
"""

from __future__ import annotations

import numpy as np

__all__ = ["label_regression"]

_RIDGE_LABELS, _RIDGE_SCORES = 20.0, 100.0
_MOST_LABELS = 2000  # that others are regressed on: the matrix to invert has twice as many rows


def label_regression(positive: np.ndarray, logits: np.ndarray, fold: np.ndarray) -> np.ndarray:
    """Each label regressed on the other labels of its row and on all scores, out of fold.

    Parameters
    ----------
    positive : boolean ndarray of shape (n_rows, n_labels)
        The annotated positives.
    logits : ndarray of the same shape
    fold : int ndarray of shape (n_rows,)
        A row's fold is predicted by the regression of the others.

    Returns
    -------
    ndarray of shape (n_rows, n_labels)
    """
    labels = positive.astype(np.float64)
    frequent = np.sort(np.argsort(-labels.sum(axis=0), kind="stable")[:_MOST_LABELS])
    n = len(frequent)
    scale = logits.std(axis=0) + 1e-9
    side = (logits[:, frequent] - logits.mean(axis=0)[frequent]) / scale[frequent]
    ridge = np.repeat([_RIDGE_LABELS, _RIDGE_SCORES], n)
    found = np.empty(labels.shape, dtype=np.float32)
    for number in np.unique(fold):
        held = fold == number
        rest = ~held if (~held).any() else held
        mean = labels[rest].mean(axis=0)
        centred = labels - mean
        design = np.hstack([centred[:, frequent], side])
        inverse = np.linalg.inv(design[rest].T @ design[rest] + np.diag(ridge))
        weights = inverse @ (design[rest].T @ centred[rest])
        # Of a label that is in the design, the column of the inverse is the regression on the
        # others, up to its diagonal.
        own = -inverse[:, :n] / np.diag(inverse)[:n]
        own[np.arange(n), np.arange(n)] = 0
        weights[:, frequent] = own
        found[held] = design[held] @ weights + mean
    return found

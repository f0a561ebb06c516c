"""Which labels go together, counted on the labels that are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix

__all__ = ["conditional_frequencies", "cooccurrence_graph"]


def conditional_frequencies(Y: LabelMatrix) -> Any:
    """How often label j is positive where label i is, among the rows that know j.

    Parameters
    ----------
    Y : LabelMatrix

    Returns
    -------
    csr_array of shape (n_labels, n_labels)
        P(j | i) in row i, column j, for labels that occur together; the diagonal is empty.

    Examples
    --------
    >>> from labelweave.labels import as_labels
    >>> Y = as_labels([[1, 1], [1, 0], [1, np.nan], [0, 1]])
    >>> conditional_frequencies(Y).toarray()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    positive = sp.csr_array(Y.positive(), dtype=np.float64)
    together = sp.coo_array(positive.T @ positive)
    pairs = together.row != together.col
    i, j, both = together.row[pairs], together.col[pairs], together.data[pairs]
    known = Y.known() if Y.is_sparse and np.isnan(Y.absent) else None
    if not Y.has_unknown:
        seen = positive.sum(axis=0)[i]
    elif known is not None:  # little is known: count that
        seen = _at(positive.T @ known.astype(np.float64), i, j)
    else:  # little is unknown: count that
        unknown = sp.csr_array(Y.unknown(), dtype=np.float64)
        seen = positive.sum(axis=0)[i] - _at(positive.T @ unknown, i, j)
    shape = (Y.n_labels, Y.n_labels)
    return sp.csr_array(sp.coo_array((both / seen, (i, j)), shape=shape))


def _at(matrix: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Entries of a sparse matrix as an array (SciPy gives a sparse one where there are none)."""
    return sp.csr_array(matrix)[i, j] if len(i) else np.zeros(0)


def cooccurrence_graph(Y: LabelMatrix) -> Any:
    """Boolean csr_array of the pairs that occur together at least once, and each with itself."""
    return sp.csr_array(conditional_frequencies(Y) + sp.eye_array(Y.n_labels) > 0)

"""Co-occurrence of labels, counted on known entries."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix

__all__ = ["conditional_frequencies", "cooccurrence_graph"]


def conditional_frequencies(Y: LabelMatrix, row_weight: np.ndarray | None = None) -> Any:
    """P(label j | label i), counted on the rows in which j is known.

    A csr_array with P(j | i) in row i, column j, for labels that occur together; the diagonal is
    empty. Rows count as often as their weights say, once by default.

    >>> from labelweave.labels import as_labels
    >>> Y = as_labels([[1, 1], [1, 0], [1, np.nan], [0, 1]])
    >>> conditional_frequencies(Y).toarray()
    array([[0. , 0.5],
           [0.5, 0. ]])
    """
    positive = sp.csr_array(Y.positive(), dtype=np.float64)
    counted = positive
    if row_weight is not None:
        counted = sp.csr_array(sp.diags_array(row_weight / row_weight.max()) @ positive)
    together = sp.coo_array(counted.T @ positive)
    pairs = together.row != together.col
    i, j, both = together.row[pairs], together.col[pairs], together.data[pairs]
    if not Y.has_unknown:
        n_known = counted.sum(axis=0)[i]
    elif Y.unstored_is_unknown:  # few entries are known: count these
        n_known = _at(counted.T @ sp.csr_array(Y.known(), dtype=np.float64), i, j)
    else:  # few entries are unknown: count these
        unknown = sp.csr_array(Y.unknown(), dtype=np.float64)
        n_known = counted.sum(axis=0)[i] - _at(counted.T @ unknown, i, j)
    shape = (Y.n_labels, Y.n_labels)
    return sp.csr_array(sp.coo_array((both / n_known, (i, j)), shape=shape))


def _at(matrix: Any, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """Entries of a sparse matrix as an array (SciPy returns a sparse one if there are none)."""
    return sp.csr_array(matrix)[i, j] if len(i) else np.zeros(0)


def cooccurrence_graph(Y: LabelMatrix) -> Any:
    """Boolean csr_array of the pairs that occur together at least once, with the diagonal."""
    return sp.csr_array(conditional_frequencies(Y) + sp.eye_array(Y.n_labels) > 0)

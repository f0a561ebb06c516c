"""Labels under partial annotation: which entries nobody annotated.

For a method for partial labels, an entry of the label matrix is one of four things: annotated as
positive, known to be negative, **unannotated** (assumed to be negative, but perhaps a missing
positive), or ignored. A label matrix has only three states, so a rule is needed that says which
entries are unannotated:

==================  ================================  ============================
`unannotated`       zeros of Y                        NaN of Y
==================  ================================  ============================
``"zeros"``         unannotated                       ignored
``"unknown"``       known negatives                   unannotated
``"auto"``          as ``"zeros"`` if Y has any zero, else as ``"unknown"``
==================  ================================  ============================

During training the four kinds are coded as 1 (positive), -1 (known negative), 0 (unannotated) and
NaN (ignored).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.labels import LabelMatrix

__all__ = ["UNANNOTATED", "as_observed", "assume_negative", "has_zeros", "unannotated_rule"]

UNANNOTATED = ("auto", "zeros", "unknown")
_KNOWN_NEGATIVE = -1.0


def has_zeros(Y: LabelMatrix) -> bool:
    """Whether any entry of the label matrix is negative."""
    positives, known = Y.counts()
    return bool((known > positives).any())


def unannotated_rule(Y: LabelMatrix, unannotated: str = "auto") -> str:
    """The rule that applies to these labels: "zeros" or "unknown"."""
    if unannotated != "auto":
        return unannotated
    return "zeros" if has_zeros(Y) else "unknown"


def as_observed(Y: LabelMatrix, unannotated: str = "auto") -> LabelMatrix:
    """Code the labels: 1 positive, -1 known negative, 0 unannotated, NaN ignored.

    >>> from labelweave.labels import as_labels
    >>> as_observed(as_labels(np.array([[1, 0], [np.nan, 1]])), "unknown").to_numpy()
    array([[ 1., -1.],
           [ 0.,  1.]], dtype=float32)
    """
    if unannotated_rule(Y, unannotated) == "zeros":
        return Y
    if Y.is_sparse and np.isnan(Y.absent):  # entries that are not stored stay unannotated
        values = Y.values.copy()
        values.data = _codes_of_unknown(values.data)
        values.eliminate_zeros()
    else:
        values = _codes_of_unknown(Y.to_numpy())
    return LabelMatrix(values, Y.names, Y.descriptions)


def _codes_of_unknown(values: np.ndarray) -> np.ndarray:
    negatives = np.where(values == 0, _KNOWN_NEGATIVE, values)
    return np.where(np.isnan(values), 0.0, negatives).astype(np.float32)


def assume_negative(observed: LabelMatrix) -> LabelMatrix:
    """Turn coded labels into plain ones: unannotated entries and known negatives become 0."""
    values: Any = observed.values
    if observed.is_sparse:
        values = values.copy()
        values.data = np.where(values.data == _KNOWN_NEGATIVE, 0.0, values.data)
        if observed.absent == 0:
            values.eliminate_zeros()
    else:
        values = np.where(values == _KNOWN_NEGATIVE, 0.0, values).astype(np.float32)
    return LabelMatrix(values, observed.names, observed.descriptions, absent=observed.absent)

"""Labels under partial annotation: which entries nobody looked at.

To a method for partial labels an entry is one of four: annotated as positive, known to be
negative, **unannotated** (assumed negative until something speaks against it), or unknown (takes
no part). A label matrix has three states, so a rule says which entries are unannotated:

==================  ================================  ============================
`unannotated`       zeros of Y                        NaN of Y
==================  ================================  ============================
``"zeros"``         unannotated                       take no part
``"unknown"``       known negatives, never doubted    unannotated
``"auto"``          as ``"zeros"`` if Y has any zero, else as ``"unknown"``
==================  ================================  ============================

During training the four are told apart by codes: 1, -1, 0 and NaN, in this order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor

from labelweave.labels import LabelMatrix

__all__ = ["UNANNOTATED", "as_observed", "assume_negative", "unannotated_in"]

UNANNOTATED = ("auto", "zeros", "unknown")
_CHECKED = -1.0


def has_zeros(Y: LabelMatrix) -> bool:
    """Whether any entry is negative."""
    positives, known = Y.counts()
    return bool((known > positives).any())


def as_observed(Y: LabelMatrix, unannotated: str = "auto") -> LabelMatrix:
    """The labels in codes: 1 positive, -1 known negative, 0 unannotated, NaN takes no part.

    >>> from labelweave.labels import as_labels
    >>> as_observed(as_labels(np.array([[1, 0], [np.nan, 1]])), "unknown").to_numpy()
    array([[ 1., -1.],
           [ 0.,  1.]], dtype=float32)
    """
    if unannotated == "auto":
        unannotated = "zeros" if has_zeros(Y) else "unknown"
    if unannotated == "zeros":
        return Y
    if Y.is_sparse and np.isnan(Y.absent):  # what is not stored is unannotated: it stays so
        values = Y.values.copy()
        values.data = _codes_of_unknown(values.data)
        values.eliminate_zeros()
    else:
        values = _codes_of_unknown(Y.to_numpy())
    return LabelMatrix(values, Y.names, Y.descriptions)


def _codes_of_unknown(values: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(values), 0.0, np.where(values == 0, _CHECKED, values)).astype(
        np.float32
    )


def assume_negative(observed: LabelMatrix) -> LabelMatrix:
    """Coded labels as plain ones: what is unannotated or known to be negative becomes 0."""
    values: Any = observed.values
    if observed.is_sparse:
        values = values.copy()
        values.data = np.where(values.data == _CHECKED, 0.0, values.data)
        if observed.absent == 0:
            values.eliminate_zeros()
    else:
        values = np.where(values == _CHECKED, 0.0, values).astype(np.float32)
    return LabelMatrix(values, observed.names, observed.descriptions, absent=observed.absent)


def unannotated_in(codes: Tensor) -> tuple[Tensor, Tensor]:
    """Plain targets (1, 0, NaN) of coded ones, and the mask of the unannotated entries."""
    return codes.clamp(min=0.0), codes == 0

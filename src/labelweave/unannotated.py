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
``"auto"``          as ``"unknown"`` if Y has any NaN, else as ``"zeros"``
==================  ================================  ============================

``"auto"`` is decided once, by all the labels that a method is trained on; validation rows follow
it. Verdicts of reviewers do not change it: it is decided by the labels before them.

During training the four kinds are coded as 1 (positive), -1 (known negative), 0 (unannotated) and
NaN (ignored).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.labels import LabelMatrix

__all__ = [
    "UNANNOTATED",
    "as_observed",
    "assume_negative",
    "blank_unannotated",
    "describe_rule",
    "unannotated_rule",
]

UNANNOTATED = ("auto", "zeros", "unknown")
_KNOWN_NEGATIVE = -1.0


def unannotated_rule(Y: LabelMatrix, unannotated: str = "auto") -> str:
    """The rule that applies to these labels: "zeros" or "unknown"."""
    if unannotated != "auto":
        return unannotated
    return "unknown" if Y.has_unknown else "zeros"


def describe_rule(Y: LabelMatrix, unannotated: str = "auto") -> str:
    """Which entries of Y are unannotated, how many they are, and why.

    >>> from labelweave.labels import as_labels
    >>> describe_rule(as_labels([[1, 0], [0, float("nan")]]))
    'unannotated entries: the 1 blank; zeros are checked negatives, since some entries are blank'
    >>> describe_rule(as_labels([[1, 0], [0, 1]]))
    'unannotated entries: the 2 zeros, since no entry is blank'
    >>> describe_rule(as_labels([[1, 0], [0, float("nan")]]), "zeros")
    'unannotated entries: the 2 zeros, as set; blanks are ignored'
    """
    positives, known = (int(count.sum()) for count in Y.counts())
    n_blank, n_zero = Y.n_unknown, known - positives
    is_set = unannotated != "auto"
    if unannotated_rule(Y, unannotated) == "unknown":
        why = "as set" if is_set else "since some entries are blank"
        entries = f"the {n_blank:,} blank{'' if n_blank == 1 else 's'}"
        return f"unannotated entries: {entries}; zeros are checked negatives, {why}"
    why = "as set" if is_set else "since no entry is blank"
    ignored = "; blanks are ignored" if n_blank else ""
    return f"unannotated entries: the {n_zero:,} zero{'' if n_zero == 1 else 's'}, {why}{ignored}"


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


def blank_unannotated(observed: LabelMatrix, labels: np.ndarray) -> LabelMatrix:
    """Turn coded labels into plain ones with blank unannotated entries and 0 for known negatives.

    The rule of the result is "unknown". It is for coded labels without ignored entries.

    Parameters
    ----------
    observed : LabelMatrix
        Labels coded by :func:`as_observed`.
    labels : boolean ndarray of shape (n_labels,)
        The labels whose unannotated entries become blank; those of all others become 0.

    Examples
    --------
    >>> codes = LabelMatrix(np.array([[1, 0, 0], [0, -1, 0]], np.float32), ["a", "b", "c"])
    >>> blank_unannotated(codes, np.array([True, True, False])).to_numpy()
    array([[ 1., nan,  0.],
           [nan,  0.,  0.]], dtype=float32)
    """
    if observed.is_sparse and labels.all():
        values = observed.values.copy()
        values.eliminate_zeros()
        values.data = np.where(values.data == _KNOWN_NEGATIVE, 0.0, values.data)
        return LabelMatrix(values, observed.names, observed.descriptions, absent=np.nan)
    codes = observed.to_numpy()
    values = np.where((codes == 0) & labels, np.nan, np.maximum(codes, 0)).astype(np.float32)
    return LabelMatrix(values, observed.names, observed.descriptions)

"""Turning fully labelled data into the conditions that labels are found in.

Positives that nobody annotated, a single positive a row, labels shared among teachers, labels
never seen in training; the last two live in :mod:`labelweave.data.label_scenarios`. Each
function is pure (it returns new objects and leaves what it was given alone), is decided by its
`random_state`, keeps sparse labels sparse, and returns the truth as well, for evaluation only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data.label_scenarios import (
    TeacherShare,
    TeacherShares,
    UnseenLabels,
    hold_labels_out,
    share_among_teachers,
)
from labelweave.data.splits import as_generator
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels

__all__ = [
    "HiddenLabels",
    "TeacherShare",
    "TeacherShares",
    "UnseenLabels",
    "hide_positives",
    "hold_labels_out",
    "keep_single_positive",
    "share_among_teachers",
]


@dataclass(frozen=True, eq=False)
class HiddenLabels:
    """Labels with some positives hidden.

    Attributes
    ----------
    Y : LabelMatrix
        What is left to learn from.
    truth : LabelMatrix
        The labels as they were.
    hidden : boolean csr_array
        The positives that were hidden.
    """

    Y: LabelMatrix
    truth: LabelMatrix
    hidden: sp.csr_array


def hide_positives(
    Y: Any,
    share: float,
    *,
    as_: str = "negative",
    negatives: str = "known",
    keep_one: bool = False,
    random_state: Any = None,
) -> HiddenLabels:
    """Hide a share of the positives, chosen by chance.

    Parameters
    ----------
    Y : labels
    share : float from 0 to 1
        Share of all positives to hide, rounded to whole entries.
    as_ : {"negative", "unknown"}, default="negative"
        What a hidden positive looks like: 0, or NaN.
    negatives : {"known", "unknown"}, default="known"
        "unknown" makes the negatives NaN too, so that only positives are known. Otherwise,
        with `as_="unknown"`, the entries that become NaN are all positive, which a method
        could take advantage of.
    keep_one : bool, default=False
        Whether each row that has a positive keeps at least one.
    random_state : None, int, RandomState or Generator

    Returns
    -------
    HiddenLabels

    Examples
    --------
    >>> import numpy as np
    >>> result = hide_positives(np.ones((2, 2)), 0.5, as_="unknown", random_state=0)
    >>> result.Y.n_unknown, result.hidden.sum()
    (2, np.int64(2))
    """
    if not 0 <= share <= 1:
        raise InputError(f"the share of positives to hide must be from 0 to 1, not {share!r}")
    labels = as_labels(Y)
    rows = _rows_of_positives(labels)
    n_hidden = round(share * len(rows))
    order = as_generator(random_state).permutation(len(rows))
    if keep_one:
        order = order[_is_repeated(rows[order])]
        if n_hidden > len(order):
            raise InputError(
                f"{n_hidden} positives cannot be hidden with one kept in each row: at most "
                f"{len(order)} of the {len(rows)} can (share={len(order) / len(rows):.3f})"
            )
    return _hidden(labels, order[:n_hidden], as_, negatives)


def keep_single_positive(
    Y: Any, *, as_: str = "negative", negatives: str = "known", random_state: Any = None
) -> HiddenLabels:
    """Keep one positive in each row, chosen by chance, and hide the others.

    Parameters
    ----------
    Y : labels
    as_, negatives, random_state
        As in :func:`hide_positives`.

    Returns
    -------
    HiddenLabels

    Examples
    --------
    >>> import numpy as np
    >>> keep_single_positive(np.ones((3, 4)), random_state=0).Y.to_numpy().sum(axis=1)
    array([1., 1., 1.], dtype=float32)
    """
    labels = as_labels(Y)
    rows = _rows_of_positives(labels)
    order = as_generator(random_state).permutation(len(rows))
    return _hidden(labels, order[_is_repeated(rows[order])], as_, negatives)


def _rows_of_positives(labels: LabelMatrix) -> np.ndarray:
    """Row of each positive, row after row."""
    counts = np.asarray(labels.positive().sum(axis=1)).ravel()
    return np.repeat(np.arange(labels.n_rows), counts)


def _is_repeated(values: np.ndarray) -> np.ndarray:
    """Whether a value stands further to the left as well."""
    repeated = np.ones(len(values), dtype=bool)
    repeated[np.unique(values, return_index=True)[1]] = False
    return repeated


def _hidden(labels: LabelMatrix, chosen: np.ndarray, as_: str, negatives: str) -> HiddenLabels:
    """Hide the positives of these numbers, counted row after row."""
    if as_ not in ("negative", "unknown"):
        raise InputError(f"as_ must be 'negative' or 'unknown', not {as_!r}")
    if negatives not in ("known", "unknown"):
        raise InputError(f"negatives must be 'known' or 'unknown', not {negatives!r}")
    if as_ == "negative" and negatives == "unknown":
        raise InputError("with negatives='unknown' nothing is negative: use as_='unknown'")
    positive = sp.csr_array(labels.positive())
    positive.sort_indices()
    hidden = sp.csr_array(
        (np.zeros(positive.nnz, dtype=bool), positive.indices, positive.indptr), positive.shape
    )
    hidden.data[chosen] = True
    hidden.eliminate_zeros()

    values, absent = labels.values.copy(), labels.absent
    if labels.is_sparse:
        values.sort_indices()  # the same choice whether the labels are sparse or dense
    stored = values.data if labels.is_sparse else values.reshape(-1)
    stored[np.flatnonzero(stored == 1)[chosen]] = 0.0 if as_ == "negative" else np.nan
    if negatives == "unknown" and not labels.is_sparse:
        stored[stored == 0] = np.nan
    elif negatives == "unknown":
        stored[stored != 1] = 0  # only positives stay stored: what is absent is unknown
        absent = np.nan
    if labels.is_sparse and (absent == 0 or negatives == "unknown"):
        values.eliminate_zeros()
    Y = LabelMatrix(values, labels.names, labels.descriptions, absent=absent)
    return HiddenLabels(Y, labels, hidden)

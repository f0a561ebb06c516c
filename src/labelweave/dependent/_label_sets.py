"""The different label sets of a label matrix."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix

__all__ = ["label_set_codes"]


def label_set_codes(Y: LabelMatrix) -> np.ndarray:
    """For each row the number of its label set, counted from 0 in order of first appearance.

    Rows have the same number where they have the same positive and the same unknown labels.

    >>> from labelweave.labels import as_labels
    >>> label_set_codes(as_labels([[1, 0], [0, 0], [1, 0], [np.nan, 1]]))
    array([0, 1, 0, 2])
    """
    parts = [sp.csr_array(Y.positive())]
    if Y.has_unknown:
        parts.append(sp.csr_array(Y.known() if Y.unstored_is_unknown else Y.unknown()))
    for part in parts:
        part.sort_indices()
    codes = np.empty(len(Y), dtype=np.int64)
    number: dict[tuple[bytes, ...], int] = {}
    for i in range(len(Y)):
        key = tuple(p.indices[p.indptr[i] : p.indptr[i + 1]].tobytes() for p in parts)
        codes[i] = number.setdefault(key, len(number))
    return codes

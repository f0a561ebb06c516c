"""Two sets of rows as one."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix

__all__ = ["join_features", "join_labels"]


def join_features(first: Any, second: Any) -> Any:
    """The rows of both, sparse if either is; images stay images.

    >>> join_features(np.zeros((2, 3)), sp.csr_array(np.ones((1, 3)))).shape
    (3, 3)
    """
    if hasattr(first, "pixels"):
        from labelweave.data.images.collection import join_images

        return join_images([first, second])
    if sp.issparse(first) or sp.issparse(second):
        return sp.vstack([sp.csr_array(first), sp.csr_array(second)], format="csr")
    return np.concatenate([first, second])


def join_labels(first: LabelMatrix, second: LabelMatrix) -> LabelMatrix:
    """The labels of both sets of rows; names and descriptions are those of the first.

    >>> from labelweave.labels import as_labels
    >>> join_labels(as_labels([[1, 0]]), as_labels([[np.nan, 1]])).to_numpy()
    array([[ 1.,  0.],
           [nan,  1.]], dtype=float32)
    """
    alike = first.absent == second.absent or np.isnan([first.absent, second.absent]).all()
    if first.is_sparse and second.is_sparse and alike:
        values: Any = sp.vstack([first.values, second.values], format="csr")
    else:
        values = np.concatenate([first.to_numpy(), second.to_numpy()])
    return LabelMatrix(values, first.names, first.descriptions, absent=first.absent)

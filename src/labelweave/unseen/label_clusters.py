"""Groups of labels of about one size, for a shallow tree."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

__all__ = ["balanced_groups"]

_ROUNDS = 5


def balanced_groups(features: sp.csr_array, size: int, random: np.random.RandomState) -> np.ndarray:
    """Split labels in two, again and again, until no group has more than `size`.

    Each split is spherical 2-means in which the half of the labels that leans most to one
    centre goes to it.

    Parameters
    ----------
    features : csr_array of shape (L, d)
        Rows of length one, or zero.
    size : int
    random : RandomState

    Returns
    -------
    ndarray of shape (n_groups, size)
        Labels of each group in their order, -1 where it has fewer.

    Examples
    --------
    >>> rows = sp.csr_array(np.array([[1.0, 0], [0, 1], [1, 0], [0, 1]]))
    >>> sorted(balanced_groups(rows, 2, np.random.RandomState(0)).tolist())
    [[0, 2], [1, 3]]
    """
    waiting, groups = [np.arange(features.shape[0])], []
    while waiting:
        labels = waiting.pop()
        if len(labels) <= size:
            groups.append(labels)
        else:
            waiting += _halves(features, labels, random)
    table = np.full((len(groups), size), -1, dtype=np.int64)
    for row, labels in enumerate(groups):
        table[row, : len(labels)] = np.sort(labels)
    return table


def _halves(
    features: sp.csr_array, labels: np.ndarray, random: np.random.RandomState
) -> list[np.ndarray]:
    rows = features[labels]
    first = random.randint(len(labels))
    far = int(np.argmin((rows @ rows[[first]].T).toarray().ravel()))
    centres = rows[[first, far]].toarray()
    half = len(labels) // 2
    for _ in range(_ROUNDS):
        lean = rows @ (centres[0] - centres[1])
        order = np.argsort(-lean, kind="stable")
        centres = np.stack([rows[part].sum(axis=0) for part in (order[:half], order[half:])])
        lengths = np.linalg.norm(centres, axis=1, keepdims=True)
        centres = centres / np.where(lengths > 0, lengths, 1)
    return [labels[order[:half]], labels[order[half:]]]

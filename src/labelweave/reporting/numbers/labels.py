"""Which labels a report shows where there is no room for all, and in which order."""

from __future__ import annotations

import numpy as np

from labelweave.labels import LabelMatrix

__all__ = ["binned_means", "most_frequent", "similar_side_by_side"]


def most_frequent(Y: LabelMatrix, n_labels: int) -> np.ndarray:
    """Columns of the labels with the most positives, the most frequent first.

    Of equally frequent labels the one that comes first; a label without a positive is left
    out unless all are.

    >>> from labelweave.labels import as_labels
    >>> most_frequent(as_labels([[0, 1, 1], [0, 0, 1]]), 5)
    array([2, 1])
    """
    positives, _ = Y.counts()
    order = np.argsort(-positives, kind="stable")
    occurring = order[positives[order] > 0]
    return (occurring if len(occurring) else order)[:n_labels]


def similar_side_by_side(likeness: np.ndarray) -> np.ndarray:
    """An order of labels that puts similar ones side by side.

    Average linkage on the symmetrised likeness, leaves ordered so that neighbours are as
    alike as can be. The diagonal and undefined entries are not looked at.

    >>> likeness = np.array([[1.0, 0.0, 0.9], [0.0, 1.0, 0.1], [0.9, 0.1, 1.0]])
    >>> order = similar_side_by_side(likeness).tolist()
    >>> abs(order.index(0) - order.index(2))
    1
    """
    n = len(likeness)
    if n < 3:
        return np.arange(n)
    from scipy.cluster.hierarchy import leaves_list, linkage, optimal_leaf_ordering
    from scipy.spatial.distance import squareform

    alike = np.nan_to_num((likeness + likeness.T) / 2)
    distance = alike.max() - alike
    np.fill_diagonal(distance, 0.0)
    flat = squareform(distance, checks=False)
    return leaves_list(optimal_leaf_ordering(linkage(flat, "average"), flat))


def binned_means(
    frequency: np.ndarray, values: np.ndarray, n_bins: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """Mean frequency and mean value of labels of about equal frequency.

    The labels with a defined value and at least one positive, sorted by frequency, fall into
    `n_bins` bins of about equal size.

    >>> binned_means(np.array([1, 2, 10, 20]), np.array([0.0, 0.2, 0.6, 0.8]), n_bins=2)
    (array([ 1.5, 15. ]), array([0.1, 0.7]))
    """
    usable = np.flatnonzero(~np.isnan(values) & (frequency > 0))
    order = usable[np.argsort(frequency[usable], kind="stable")]
    bins = [part for part in np.array_split(order, n_bins) if len(part)]
    x = np.array([frequency[part].mean() for part in bins])
    return x, np.array([values[part].mean() for part in bins])

"""Sparse products for ZestXML: the entries of its bilinear map, and features of pairs."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import scipy.sparse as sp

from labelweave.rows import row_chunks

_ENTRIES_PER_CHUNK = 20_000_000  # entries of a chunk of products


def sparse_pattern(
    X: sp.csr_array, F: sp.csr_array, Y: sp.csr_array, alpha: float, size: int
) -> sp.csr_array:
    """Select the entries of the map, with a score of their association.

    With binary features, Co = X^T Y F counts the positive pairs that have document feature i and
    label feature j; the score is Co / (alpha (f_x + f_y - Co) + (1 - alpha) a_x a_y), where f
    counts the positive pairs and a the documents or labels that have a feature. The largest
    `size` entries of each row and of each column are kept.
    """
    x, f, y = (_binary(part) for part in (X, F, Y))
    labels_of_pairs = sp.csr_array(y @ f)  # documents by label features
    together = sp.csr_array(x.T @ labels_of_pairs)
    f_x = np.asarray(x.T @ y.sum(axis=1)).ravel()
    f_y = np.asarray(f.T @ y.sum(axis=0)).ravel()
    a_x, a_y = np.asarray(x.sum(axis=0)).ravel(), np.asarray(f.sum(axis=0)).ravel()
    rows = np.repeat(np.arange(together.shape[0]), np.diff(together.indptr))
    columns, counts = together.indices, together.data
    below = alpha * (f_x[rows] + f_y[columns] - counts) + (1 - alpha) * a_x[rows] * a_y[columns]
    together.data = (counts / np.maximum(below, 1e-12)).astype(np.float32)
    kept = _largest_in_rows(together, size)
    by_column = _largest_in_rows(sp.csr_array(together.T), size)
    return sp.csr_array(kept.maximum(sp.csr_array(by_column.T)))


def _binary(matrix: sp.csr_array) -> sp.csr_array:
    ones = matrix.copy()
    ones.data = np.ones_like(ones.data, dtype=np.float32)
    return ones


def _largest_in_rows(matrix: sp.csr_array, size: int) -> sp.csr_array:
    """The `size` largest entries of each row; of equal entries the first."""
    rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((matrix.indices, -matrix.data, rows))
    place = np.arange(len(order)) - np.repeat(matrix.indptr[:-1], np.diff(matrix.indptr))
    chosen = order[place < size]
    return sp.csr_array(
        (matrix.data[chosen], (rows[chosen], matrix.indices[chosen])), shape=matrix.shape
    )


def bilinear_scores(X: sp.csr_array, W: sp.csr_array, F: sp.csr_array) -> np.ndarray:
    """x W y of all documents and labels, as a dense array."""
    result = np.empty((X.shape[0], F.shape[0]), dtype=np.float32)
    for part, scores in _scores_in_chunks(X, W, F):
        result[part] = scores
    return result


def _scores_in_chunks(
    X: sp.csr_array, W: sp.csr_array, F: sp.csr_array
) -> Iterator[tuple[slice, np.ndarray]]:
    """The scores of all labels, for one chunk of documents at a time.

    X W is computed first, because W y of all labels would be nearly dense for common words. Each
    entry of F then adds one contiguous row, that of its feature in the documents of the chunk.
    """
    used = np.unique(F.indices)
    F, W = sp.csr_array(F[:, used]), sp.csr_array(W[:, used])
    for part in row_chunks(X.shape[0], max(len(used), F.shape[0])):
        mapped = (X[part] @ W).T.toarray(order="C")
        yield part, (F @ mapped).T


def shortlist(
    X: sp.csr_array, W: sp.csr_array, F: sp.csr_array, Y: sp.csr_array, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of each document with its best labels by x W y and with its positive labels."""
    size = min(size, F.shape[0])
    rows, columns = [], []
    for part, scores in _scores_in_chunks(X, W, F):
        best = np.argpartition(-scores, size - 1, axis=1)[:, :size]
        rows.append(np.repeat(np.arange(part.start, part.stop), size))
        columns.append(best.ravel())
    positive = Y.tocoo()
    codes = np.concatenate(rows) * F.shape[0] + np.concatenate(columns)
    codes = np.union1d(codes, positive.row.astype(np.int64) * F.shape[0] + positive.col)
    return codes // F.shape[0], codes % F.shape[0]


def pair_features(
    X: sp.csr_array, F: sp.csr_array, W: sp.csr_array, rows: np.ndarray, columns: np.ndarray
) -> sp.csr_array:
    """The features x_i y_j of pairs, one column per entry (i, j) of the map W.

    The entries that a document's words select are grouped by their label feature j; a pair takes
    the groups of its label's features. A label with a common word would select most of W.
    """
    by_feature = np.argsort(W.indices, kind="stable")  # entries, those of one j together
    word = np.repeat(np.arange(W.shape[0]), np.diff(W.indptr))[by_feature]
    select = (np.ones(W.nnz, dtype=np.float32), (word, np.arange(W.nnz)))
    selected = sp.csr_array(X @ sp.csr_array(select, shape=(W.shape[0], W.nnz)))
    if not selected.nnz:
        return sp.csr_array((len(rows), W.nnz), dtype=np.float32)
    selected.sort_indices()
    document = np.repeat(np.arange(X.shape[0]), np.diff(selected.indptr))
    keys = document * W.shape[1] + W.indices[by_feature][selected.indices]
    bounds = np.flatnonzero(np.diff(keys, prepend=-1, append=-1))
    groups = keys[bounds[:-1]]
    width = int(np.diff(selected.indptr).mean()) + 1
    parts = []
    for part in row_chunks(len(rows), width, _ENTRIES_PER_CHUNK):
        mine = columns[part]
        each = np.diff(F.indptr)[mine]
        of_label = _ranges(F.indptr[mine], each)
        wanted = np.repeat(rows[part], each) * W.shape[1] + F.indices[of_label]
        group = np.minimum(np.searchsorted(groups, wanted), len(groups) - 1)
        count = np.where(groups[group] == wanted, np.diff(bounds)[group], 0)
        places = _ranges(bounds[group], count)
        values = selected.data[places] * np.repeat(F.data[of_label], count)
        total = np.concatenate([[0], np.cumsum(count)])
        ends = total[np.concatenate([[0], np.cumsum(each)])]
        entries = by_feature[selected.indices[places]]
        parts.append(sp.csr_array((values, entries, ends), shape=(len(mine), W.nnz)))
    return sp.csr_array(sp.vstack(parts, format="csr"))


def _ranges(starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The numbers start, start + 1, ... of all ranges, one after the other.

    >>> _ranges(np.array([5, 0, 9]), np.array([2, 0, 3]))
    array([ 5,  6,  9, 10, 11])
    """
    before = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(starts - before, lengths)


def score_shortlist(raw: np.ndarray, direct: np.ndarray, share: float) -> np.ndarray:
    """(1 - share) exp(-max(0, 1 - raw)^2) + share direct.

    >>> score_shortlist(np.array([1.0, 0.0]), np.array([0.0, 1.0]), 0.1).round(3)
    array([0.9  , 0.431])
    """
    return (1 - share) * np.exp(-(np.maximum(0, 1 - raw) ** 2)) + share * direct

"""What the features of the rows say beside the scores: a regression and votes of near rows.

Scores come from one method. Two others that see the same features, and err elsewhere, tell which of
its high scores to believe. Both work on the rows in some hundred dimensions, where the cost does
not depend on how many features there are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.shallow.label_regression import regression_on_rows
from labelweave.shallow.neighbors import NeighborSearch

__all__ = ["neighbour_votes", "numeric_rows", "reduced_rows", "views_of_rows"]

_MOST_DIMENSIONS = 300
_MOST_COLUMNS = 20_000  # of a sparse matrix: the directions found in them are dense
_NEIGHBOURS = 100
_MOST_VOTERS = 30_000  # rows to search among: the search takes their number times that of rows
_CLOSENESS = 4  # a vote weighs the cosine to this power


def numeric_rows(data: Dataset) -> Any:
    """Features as a matrix, TF-IDF weights of texts; None where there are no finite numbers."""
    if data.is_text:
        from labelweave.text import TfidfEmbedder

        try:
            return TfidfEmbedder().fit_transform(data.X)
        except InputError:  # no word in any of them
            return None
    if data.is_image:
        return None
    X: Any = sp.csr_array(data.X) if sp.issparse(data.X) else np.asarray(data.X)
    values = X.data if sp.issparse(X) else X
    if X.shape[1] == 0 or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        return None
    return X


def views_of_rows(
    X: Any, positive: np.ndarray, fold: np.ndarray, *, seed: int = 0
) -> list[np.ndarray]:
    """Two more opinions on each entry; neither knows the entry's own annotation.

    Parameters
    ----------
    X : ndarray or sparse matrix of shape (n_rows, n_features)
    positive : boolean ndarray of shape (n_rows, n_labels)
        The annotated positives.
    fold : int ndarray of shape (n_rows,)
        The regression of a fold is fitted on the others.
    seed : int, default=0
        Of the reduction to few dimensions, and of the rows that vote where there are very many.

    Returns
    -------
    list of two ndarrays of shape (n_rows, n_labels)
        The regression on features and other labels, and the votes of near rows.
    """
    rows = reduced_rows(X, seed=seed)
    return [regression_on_rows(positive, rows, fold), neighbour_votes(rows, positive, seed=seed)]


def reduced_rows(X: Any, *, seed: int = 0) -> np.ndarray:
    """Rows of length one in at most 300 dimensions that keep most of their inner products.

    Columns of a sparse matrix are weighted by how few rows have them, as words are, and of very
    many the most frequent are kept; those of a dense one are brought to mean 0 and deviation 1.

    Examples
    --------
    >>> reduced_rows(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    from sklearn.preprocessing import normalize

    if sp.issparse(X):
        from sklearn.feature_extraction.text import TfidfTransformer

        words = sp.csr_matrix(X, dtype=np.float32)
        if words.shape[1] > _MOST_COLUMNS:
            used = np.bincount(words.indices, minlength=words.shape[1])
            words = words[:, np.sort(np.argsort(-used, kind="stable")[:_MOST_COLUMNS])]
        rows = TfidfTransformer(norm="l2").fit_transform(words)
    else:
        values = np.asarray(X, dtype=np.float64)
        deviation = values.std(axis=0)
        rows = normalize((values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
    if rows.shape[1] > _MOST_DIMENSIONS:
        from sklearn.decomposition import TruncatedSVD

        with np.errstate(invalid="ignore"):  # its share of no variance, where all is zero
            rows = TruncatedSVD(_MOST_DIMENSIONS, random_state=seed).fit_transform(rows)
    elif sp.issparse(rows):
        rows = rows.toarray()
    return normalize(rows).astype(np.float32)


def neighbour_votes(rows: np.ndarray, positive: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """Share of the 100 nearest other rows that have each label, near ones weighing more.

    Parameters
    ----------
    rows : float32 ndarray of shape (n_rows, n_dimensions)
        Of length one: near in distance is near in angle.
    positive : boolean ndarray of shape (n_rows, n_labels)
    seed : int, default=0
        Of more than 30,000 rows so many are drawn, and the nearest are looked for among these.

    Returns
    -------
    float32 ndarray of shape (n_rows, n_labels)
    """
    n = len(rows)
    voters = np.arange(n)
    if n > _MOST_VOTERS:
        voters = np.sort(np.random.default_rng(seed).choice(n, _MOST_VOTERS, replace=False))
    k = min(_NEIGHBOURS + 1, len(voters))  # one more: a row finds itself, and has no vote
    near = voters[NeighborSearch(rows[voters]).of(rows, k)]
    cosines = np.empty(near.shape, dtype=np.float32)
    # A block of rows at a time: the neighbours of all at once would be 100 copies of the data.
    for block in np.array_split(np.arange(n), -(-n // 500)):
        cosines[block] = np.einsum("id,ikd->ik", rows[block], rows[near[block]])
    weights = np.maximum(cosines, 0) ** _CLOSENESS
    weights[near == np.arange(n)[:, None]] = 0
    weights /= weights.sum(axis=1, keepdims=True) + 1e-3
    votes = sp.csr_array((weights.ravel(), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return votes @ positive.astype(np.float32)

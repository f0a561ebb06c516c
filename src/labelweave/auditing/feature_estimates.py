"""Two estimates of each entry from the features: a regression and the votes of near rows.

The scores of an audit come from one method. Two other methods that see the same features, and make
other errors, show which of its high scores to believe. Both work on rows reduced to a few hundred
dimensions, so that their cost does not depend on the number of features.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.shallow.label_regression import regression_on_rows
from labelweave.shallow.neighbors import NeighborSearch
from labelweave.tables.table import Table, numbers_or_table

__all__ = ["feature_estimates", "neighbour_votes", "numeric_features", "reduced_rows"]

_MOST_DIMENSIONS = 300
_MOST_COLUMNS = 20_000  # of a sparse matrix: its singular vectors are dense
_NEIGHBOURS = 100
_MOST_VOTERS = 30_000  # the cost of the search grows with this number times that of the rows
_VOTE_EXPONENT = 4  # a vote has the weight cosine**4


def numeric_features(data: Dataset) -> Any:
    """Return the features as a matrix, or None if they have no numbers.

    Texts become TF-IDF weights, mixed tables the features of a `TableEncoder`. Images have none.
    """
    if data.is_text:
        from labelweave.text import TfidfEmbedder

        try:
            return TfidfEmbedder().fit_transform(data.X)
        except InputError:  # no text contains a word
            return None
    if data.is_image:
        return None
    table = numbers_or_table(data.X, missing_values=False)
    if isinstance(table, Table):
        try:
            return table.unfitted_encoder().fit_transform(table.as_reported())
        except InputError:  # no column can be learnt from
            return None
    X: Any = sp.csr_array(data.X) if sp.issparse(data.X) else np.asarray(data.X)
    values = X.data if sp.issparse(X) else X
    if X.shape[1] == 0 or values.dtype.kind not in "biuf" or not np.isfinite(values).all():
        return None
    return X


def feature_estimates(
    X: Any, positive: np.ndarray, fold: np.ndarray, *, seed: int = 0
) -> list[np.ndarray]:
    """Compute two estimates of each entry, neither of which uses the entry's own annotation.

    The first is the regression on features and other labels, fitted for a fold on the other folds;
    the second the votes of near rows. `positive` are the annotated positives; `seed` is that of the
    reduced dimensions and of the choice of voters among very many rows.
    """
    rows = reduced_rows(X, seed=seed)
    return [regression_on_rows(positive, rows, fold), neighbour_votes(rows, positive, seed=seed)]


def reduced_rows(X: Any, *, seed: int = 0) -> np.ndarray:
    """Return rows of length one in at most 300 dimensions that keep most of their inner products.

    The columns of a sparse matrix get inverse document frequencies as weights, and only the most
    frequent of very many columns are kept. Those of a dense matrix are standardized.

    >>> reduced_rows(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist()
    [[-1.0, 0.0], [1.0, 0.0]]
    """
    from sklearn.preprocessing import normalize

    if sp.issparse(X):
        from sklearn.feature_extraction.text import TfidfTransformer

        counts = sp.csr_matrix(X, dtype=np.float32)
        if counts.shape[1] > _MOST_COLUMNS:
            frequency = np.bincount(counts.indices, minlength=counts.shape[1])
            counts = counts[:, np.sort(np.argsort(-frequency, kind="stable")[:_MOST_COLUMNS])]
        rows = TfidfTransformer(norm="l2").fit_transform(counts)
    else:
        values = np.asarray(X, dtype=np.float64)
        deviation = values.std(axis=0)
        rows = normalize((values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0))
    if rows.shape[1] > _MOST_DIMENSIONS:
        from sklearn.decomposition import TruncatedSVD

        with np.errstate(invalid="ignore"):  # its share of variance is 0 / 0 if all rows are zero
            rows = TruncatedSVD(_MOST_DIMENSIONS, random_state=seed).fit_transform(rows)
    elif sp.issparse(rows):
        rows = rows.toarray()
    return normalize(rows).astype(np.float32)


def neighbour_votes(rows: np.ndarray, positive: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """Compute the weighted share of the 100 nearest other rows that have each label.

    * `rows`: Rows of length one, so that the nearest rows are those of the highest cosine.
    * `seed`: If there are more than 30,000 rows, 30,000 of them are drawn as possible neighbours.
    """
    n = len(rows)
    voters = np.arange(n)
    if n > _MOST_VOTERS:
        voters = np.sort(np.random.default_rng(seed).choice(n, _MOST_VOTERS, replace=False))
    k = min(_NEIGHBOURS + 1, len(voters))  # one more, since a row finds itself and does not vote
    near = voters[NeighborSearch(rows[voters]).of(rows, k)]
    cosines = np.empty(near.shape, dtype=np.float32)
    # In chunks of rows: the neighbours of all rows at once would be 100 copies of the data.
    for chunk in np.array_split(np.arange(n), -(-n // 500)):
        cosines[chunk] = np.einsum("id,ikd->ik", rows[chunk], rows[near[chunk]])
    weights = np.maximum(cosines, 0) ** _VOTE_EXPONENT
    weights[near == np.arange(n)[:, None]] = 0
    weights /= weights.sum(axis=1, keepdims=True) + 1e-3
    votes = sp.csr_array((weights.ravel(), near.ravel(), np.arange(0, n * k + 1, k)), shape=(n, n))
    return votes @ positive.astype(np.float32)

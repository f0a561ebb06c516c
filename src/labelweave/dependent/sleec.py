"""SLEEC: local embeddings of label vectors that preserve nearest neighbours."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.linalg import cho_factor, cho_solve
from scipy.sparse.linalg import LinearOperator, eigsh
from sklearn.cluster import KMeans
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.importance import column_scales
from labelweave.labels import LabelMatrix
from labelweave.rows import row_chunks
from labelweave.shallow.neighbors import NeighborSearch, sum_over_neighbors

__all__ = ["SLEEC"]

_ROWS_PER_CLUSTER = 6000
_DENSE_BELOW = 150  # up to this number of rows a dense decomposition is used


class SLEEC(MultiLabelClassifier):
    """Sparse local embeddings for extreme multi-label classification [1]_.

    The training rows are clustered by their features. In each cluster

    1. every row is paired with the rows whose label vectors have the largest inner product with
       its label vector (the pairs Omega);
    2. embeddings Z keep those inner products, ``min || P(Y Y^T) - P(Z Z^T) ||`` over matrices of
       rank `embedding_size`, where P selects the pairs of Omega (equation 2), by singular value
       projection (Algorithm 3): ``M <- top eigenvectors of M + step P(Y Y^T - M)``, from M = 0;
    3. a linear map V predicts embeddings from features, ``min || Z - X V ||^2 + l2 || V ||^2
       + l1 || X V ||_1`` (equations 3 and 4);

    The labels of a row are predicted from its nearest neighbours among the ``X V`` of its cluster
    (Algorithm 2), averaged over several clusterings.

    Parameters
    ----------
    embedding_size : int, default=50
        Number of dimensions; at most the number of labels or rows is used.
    label_neighbors : int, default=50
        Rows that each row is paired with, including itself.
    svp_iterations : int, default=10
    step : float, default=1.0
        Step of the singular value projection; with at most 1 the loss never increases.
    l2 : float, default=0.3
        Ridge penalty, in units of the mean square of a feature column.
    l1 : float, default=0.0
        Penalty that shrinks small embeddings to zero, by ADMM; in units of the mean absolute Z.
    k : int, default=20
        Neighbours that vote.
    n_clusters : int or "auto", default="auto"
        "auto" uses one per 6,000 rows, as in the paper.
    n_learners : int, default=5
        Number of clusterings. With one cluster all would be equal, so there is only one.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. The seed draws
        the first centres of the clusters; with one cluster nothing is random.

    Attributes
    ----------
    learners_ : list of dict
        For each clustering its ``centres`` and ``parts``, for each cluster the ``rows``, the
        map ``weights`` (its last row is the constant) and the ``embedding`` of the rows.
    scale_ : ndarray of shape (n_features,)
        The divisors of the features.
    train_positive_, train_known_ : csr_array or ndarray of shape (n_rows, n_labels)
        Labels of the training rows; the second is None where all are known.

    Notes
    -----
    Departures: if more than half of the entries are non-zero, features are divided by their
    standard deviation, otherwise (texts, mostly) all by the same number; a constant feature is
    added (the paper's map has none). Ties of inner products, which the paper does not specify,
    are broken by the order of the data, from the row itself on and around the end. The rank never
    exceeds the number of labels.

    Unknown entries count as 0 in the inner products. In the prediction they are ignored: the
    probability is the share of the positives among the neighbours whose entry is known, over all
    learners, or the label's frequency if there is none.

    References
    ----------
    .. [1] K. Bhatia, H. Jain, P. Kar, M. Varma and P. Jain. Sparse local embeddings for extreme
       multi-label classification. NeurIPS 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.sleec import SLEEC
    >>> X = np.repeat(np.eye(3), 8, axis=0)
    >>> Y = np.repeat([[1, 1, 0], [0, 1, 0], [0, 0, 1]], 8, axis=0)
    >>> SLEEC(k=5).fit(X, Y).predict(np.eye(3))
    array([[1, 1, 0],
           [0, 1, 0],
           [0, 0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "embedding_size": [Interval(Integral, 1, None, closed="left")],
        "label_neighbors": [Interval(Integral, 1, None, closed="left")],
        "svp_iterations": [Interval(Integral, 1, None, closed="left")],
        "step": [Interval(Real, 0, None, closed="neither")],
        "l2": [Interval(Real, 0, None, closed="neither")],
        "l1": [Interval(Real, 0, None, closed="left")],
        "k": [Interval(Integral, 1, None, closed="left")],
        "n_clusters": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "n_learners": [Interval(Integral, 1, None, closed="left")],
    }

    tuning_space: ClassVar = {
        "embedding_size": ("int-log", 10, 200),
        "label_neighbors": ("int-log", 5, 100),
        "l2": ("log", 1e-4, 1.0),
        "k": ("int-log", 3, 50),
    }

    def __init__(
        self,
        embedding_size: int = 50,
        label_neighbors: int = 50,
        svp_iterations: int = 10,
        step: float = 1.0,
        l2: float = 0.3,
        l1: float = 0.0,
        k: int = 20,
        n_clusters: int | str = "auto",
        n_learners: int = 5,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.embedding_size = embedding_size
        self.label_neighbors = label_neighbors
        self.svp_iterations = svp_iterations
        self.step = step
        self.l2 = l2
        self.l1 = l1
        self.k = k
        self.n_clusters = n_clusters
        self.n_learners = n_learners
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return the method as the tables of C-GMVAE name it; they give no settings."""
        return cls()

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"n_clusters": 2, "n_learners": 3, "k": 5}

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        positives, known = Y.counts()
        self.frequency_ = positives / known
        self.train_positive_ = sp.csr_array(Y.positive()).astype(np.float32)
        known_entries = Y.known()
        self.train_known_ = None if known_entries is None else known_entries.astype(np.float32)
        self._learn_scale(X)
        X = self._scaled(X)
        n_clusters = self.n_clusters
        if n_clusters == "auto":
            n_clusters = max(1, round(len(Y) / _ROWS_PER_CLUSTER))
        n_clusters = min(int(n_clusters), len(Y))
        random = self._generator()
        self.learners_: list[dict[str, Any]] = []
        for _ in range(self.n_learners if n_clusters > 1 else 1):
            centres, cluster = _cluster(X, n_clusters, random)
            members = [np.flatnonzero(cluster == c) for c in range(cluster.max() + 1)]
            parts = [self._fit_part(X[rows], rows) for rows in members]
            self.learners_.append({"centres": centres, "parts": parts})

    def _learn_scale(self, X: Any) -> None:
        n_used = X.nnz if sp.issparse(X) else np.count_nonzero(X)
        largest = np.abs(X).max(axis=0)
        largest = np.asarray(largest.toarray() if sp.issparse(largest) else largest).ravel()
        if n_used <= X.shape[0] * X.shape[1] / 2:
            largest[:] = largest.max()
            spread = largest
        else:
            spread = column_scales(X)
        scale = np.where(spread > 1e-6 * largest, spread, largest)
        self.scale_ = np.where(scale > 0, scale, 1).astype(X.dtype)

    def _scaled(self, X: Any) -> Any:
        return sp.csr_array(X / self.scale_) if sp.issparse(X) else X / self.scale_

    def _fit_part(self, X: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
        """Steps 1 to 3 in one cluster."""
        labels = self.train_positive_[rows]
        pairs = label_pairs(labels, self.label_neighbors)
        size = min(self.embedding_size, len(rows), self.n_labels_)
        Z = singular_value_projection(pairs, size, self.svp_iterations, self.step)
        weights = fit_regression(_with_constant(X), Z, self.l2, self.l1)
        return {"rows": rows, "weights": weights, "embedding": _with_constant(X) @ weights}

    def _predict_proba(self, X: Any) -> np.ndarray:
        positive = np.zeros((X.shape[0], self.n_labels_), dtype=np.float32)
        known = np.zeros((X.shape[0], 1 if self.train_known_ is None else self.n_labels_))
        X = self._scaled(X)
        for learner in self.learners_:
            centres = learner["centres"]
            cluster = np.zeros(X.shape[0], np.intp)
            if centres is not None:
                cluster = _nearest(X, centres)
            for c, part in enumerate(learner["parts"]):
                members = np.flatnonzero(cluster == c)
                if len(members) == 0:
                    continue
                embedding = _with_constant(X[members]) @ part["weights"]
                search = NeighborSearch(part["embedding"], "matrix")
                nearest = part["rows"][search.of(embedding, min(self.k, len(part["rows"])))]
                for chunk in row_chunks(len(members), self.n_labels_):
                    rows = members[chunk]
                    positive[rows] += sum_over_neighbors(nearest[chunk], self.train_positive_)
                    if self.train_known_ is None:
                        known[rows] += nearest.shape[1]
                    else:
                        known[rows] += sum_over_neighbors(nearest[chunk], self.train_known_)
        return np.where(known > 0, positive / np.maximum(known, 1), self.frequency_)


def label_pairs(labels: sp.csr_array, n_neighbors: int) -> sp.csr_array:
    """The inner products of label vectors at the pairs of Omega, a symmetric sparse matrix.

    >>> label_pairs(sp.csr_array([[1, 1], [1, 0], [0, 1]]), 2).toarray()
    array([[2., 1., 1.],
           [1., 1., 0.],
           [1., 0., 1.]])
    """
    n, k = labels.shape[0], min(n_neighbors, labels.shape[0])
    transposed, index = labels.T.toarray(), np.arange(n)
    rows, columns, values = [], [], []
    for chunk in row_chunks(n, n):
        inner = labels[chunk] @ transposed
        # Larger products first, ties in the order of the data after the row: all keys differ.
        key = np.float64(-n) * inner + index
        key -= index[chunk, None]
        key += n * (index < index[chunk, None])
        chosen = np.argpartition(key, k - 1, axis=1)[:, :k]
        rows.append(np.repeat(index[chunk], k))
        columns.append(chosen.ravel())
        values.append(np.take_along_axis(inner, chosen, axis=1).ravel())
    r, c, v = (np.concatenate(part) for part in (rows, columns, values))
    both = np.concatenate([r, c]) * n + np.concatenate([c, r])
    cells, first = np.unique(both, return_index=True)
    data = np.concatenate([v, v])[first].astype(np.float64)
    return sp.csr_array((data, (cells // n, cells % n)), shape=(n, n))


def singular_value_projection(
    pairs: sp.csr_array, size: int, iterations: int, step: float
) -> np.ndarray:
    """Z of `size` columns with Z Z^T close to `pairs` wherever it stores an entry (Algorithm 3)."""
    n = pairs.shape[0]
    rows, columns = np.repeat(np.arange(n), np.diff(pairs.indptr)), pairs.indices
    Z = np.zeros((n, size))
    for _ in range(iterations):
        fitted = np.empty(pairs.nnz)
        for chunk in row_chunks(pairs.nnz, size):
            fitted[chunk] = np.einsum("ij,ij->i", Z[rows[chunk]], Z[columns[chunk]])
        residual = sp.csr_array((step * (pairs.data - fitted), columns, pairs.indptr), shape=(n, n))
        values, vectors = _top_eigenvectors(Z, residual, size)
        Z = vectors * np.sqrt(np.maximum(values, 0))
    return Z


def _top_eigenvectors(
    Z: np.ndarray, residual: sp.csr_array, size: int
) -> tuple[np.ndarray, np.ndarray]:
    """The largest eigenvalues and eigenvectors of Z Z^T + residual, a sum that is not stored."""
    n = len(Z)
    if n <= max(_DENSE_BELOW, 3 * size):
        values, vectors = np.linalg.eigh(Z @ Z.T + residual.toarray())
        return values[-size:], vectors[:, -size:]
    operator = LinearOperator((n, n), lambda v: Z @ (Z.T @ v) + residual @ v, dtype=np.float64)
    # Without a start ARPACK draws from the global generator.
    start = np.random.RandomState(0).normal(size=n)
    return eigsh(operator, k=size, which="LA", v0=start, tol=1e-9)


def fit_regression(X: Any, Z: np.ndarray, l2: float, l1: float, iterations: int = 30) -> np.ndarray:
    """V of ``min || Z - X V ||^2 + l2 || V ||^2 + l1 || X V ||_1``, penalties in relative units."""
    square = X.data @ X.data if sp.issparse(X) else np.vdot(X, X)
    penalty = l2 * square / X.shape[1]
    if l1 == 0:
        return _Ridge(X, penalty)(Z)
    # ADMM: A stands for X V, B for the scaled multipliers, rho = 1.
    shrinkage = l1 * np.abs(Z).mean() / 2
    ridge = _Ridge(X, penalty / 2)
    A = B = np.zeros_like(Z)
    for _ in range(iterations):
        V = ridge((Z + A - B) / 2)
        fitted = X @ V
        A = np.sign(fitted + B) * np.maximum(np.abs(fitted + B) - shrinkage, 0)
        B = B + fitted - A
    return V


class _Ridge:
    """Ridge regression on one X: the smaller of the two Gram matrices is factored once."""

    def __init__(self, X: Any, penalty: float) -> None:
        self.X, self.by_features = X, X.shape[1] <= X.shape[0]
        gram = X.T @ X if self.by_features else X @ X.T
        gram = np.asarray(gram.toarray() if sp.issparse(gram) else gram, dtype=np.float64)
        gram[np.diag_indices_from(gram)] += max(penalty, 1e-12)
        self.factor = cho_factor(gram, overwrite_a=True)

    def __call__(self, targets: np.ndarray) -> np.ndarray:
        if self.by_features:
            return cho_solve(self.factor, self.X.T @ targets)
        return self.X.T @ cho_solve(self.factor, targets)


def _with_constant(X: Any) -> Any:
    ones = np.ones((X.shape[0], 1), dtype=X.dtype)
    return sp.hstack([X, ones], "csr") if sp.issparse(X) else np.hstack([X, ones])


def _cluster(X: Any, n_clusters: int, random: Any) -> tuple[np.ndarray | None, np.ndarray]:
    """Centres of k-means and the cluster of each row."""
    if n_clusters == 1:
        return None, np.zeros(X.shape[0], dtype=np.intp)
    seed = random.randint(np.iinfo(np.int32).max)
    centres = KMeans(n_clusters, n_init=1, random_state=seed).fit(X).cluster_centers_
    cluster = _nearest(X, centres)
    used = np.unique(cluster)  # with fewer different rows than clusters some are empty
    return centres[used], np.searchsorted(used, cluster)


def _nearest(X: Any, centres: np.ndarray) -> np.ndarray:
    """The nearest centre of each row; one product, which leaves the threads of BLAS alone."""
    return (np.sum(centres**2, axis=1) - 2 * (X @ centres.T)).argmin(axis=1)

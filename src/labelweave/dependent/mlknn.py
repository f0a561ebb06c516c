"""ML-kNN: the labels of the nearest neighbours, combined by Bayes' rule."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.exceptions import LabelweaveWarning
from labelweave.labels import LabelMatrix
from labelweave.rows import row_chunks
from labelweave.shallow.neighbors import ENGINES, NeighborSearch, sum_over_neighbors

__all__ = ["MLkNN"]

_CHUNK_ENTRIES = 4_000_000  # dense label counts per chunk of rows


class MLkNN(MultiLabelClassifier):
    """Multi-label k nearest neighbours [1]_.

    For a row x and a label l let C be the number of the `k` nearest neighbours of x that have
    l. The prediction is the posterior probability of "x has l" (H1) against "x has not" (H0)
    given C, with both likelihoods counted on the training rows and their neighbours::

        P(H1 | C) = P(H1) P(C | H1) / (P(H1) P(C | H1) + P(H0) P(C | H0))

    The threshold 0.5 is the paper's decision, the more probable of the two.

    Parameters
    ----------
    k : int, default=10
        Number of neighbours. With n training rows at most n - 1 are used.
    smoothing : float, default=1.0
        The paper's s, added to every count (1 is Laplace's rule).
    neighbors : {"auto", "matrix", "sklearn", "faiss"}, default="auto"
        The exact search of the neighbours: see :mod:`labelweave.shallow.neighbors`.
    n_jobs : int, optional
        Threads of the neighbour search; None means one.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. Nothing in
        this method is random; the seed picks the rows held out to tune a threshold.

    Attributes
    ----------
    k_ : int
        Number of neighbours used.
    prior_ : ndarray of shape (n_labels,)
        P(H1).
    posterior_ : ndarray of shape (n_labels, k_ + 2)
        P(H1 | C) for C = 0 ... k_, and in the last column the prior, for rows whose neighbours
        all have an unknown entry.

    Notes
    -----
    There is no departure from the paper if every label is known. Unknown entries are ignored: a
    training row whose entry for l is unknown is left out of the prior and the likelihoods of l.
    If only u of the k neighbours have a known entry for l, of which p are positive, the count is
    rescaled to k neighbours, C = round(k p / u). With u = 0 the posterior is the prior.

    A training row is not its own neighbour, its duplicates are. Of rows at equal distance the
    one that comes first in the training data is taken; the paper does not specify this.

    References
    ----------
    .. [1] M.-L. Zhang and Z.-H. Zhou. ML-KNN: A lazy learning approach to multi-label learning.
       Pattern Recognition 40(7), 2007, pages 2038-2048.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.mlknn import MLkNN
    >>> X = np.repeat([[0.0], [1.0]], 8, axis=0)
    >>> Y = np.repeat([[1, 0], [0, 1]], 8, axis=0)
    >>> MLkNN(k=3).fit(X, Y).predict([[0.1], [0.9]])
    array([[1, 0],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "k": [Interval(Integral, 1, None, closed="left")],
        "smoothing": [Interval(Real, 0, None, closed="neither")],
        "neighbors": [StrOptions(set(ENGINES))],
        "n_jobs": [Integral, None],
    }

    tuning_space: ClassVar = {"k": ("int-log", 3, 50), "smoothing": ("log", 0.1, 10.0)}

    def __init__(
        self,
        k: int = 10,
        smoothing: float = 1.0,
        neighbors: str = "auto",
        n_jobs: int | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.k = k
        self.smoothing = smoothing
        self.neighbors = neighbors
        self.n_jobs = n_jobs
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return the method with the settings of its paper, ten neighbours and a smoothing of 1."""
        return cls(k=10, smoothing=1.0)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False
        return tags

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        s = self.smoothing
        self.k_ = min(self.k, len(Y) - 1)
        if self.k_ < self.k and self.k_ > 0:
            warnings.warn(
                f"k={self.k} neighbours of {len(Y)} rows are all of them: the prediction hardly "
                "depends on the features; lower k",
                LabelweaveWarning,
                stacklevel=4,
            )
        self.train_X_ = X
        # 32-bit integers can be summed by a matrix product
        self.train_positive_ = Y.positive().astype(np.int32)
        known = Y.known()
        self.train_known_ = None if known is None else known.astype(np.int32)
        self._search = NeighborSearch(X, self.neighbors, self.n_jobs)

        # Equations 4 and 5: P(H1) = (s + number of positives) / (2 s + m).
        n_positive, n_known = Y.counts()
        self.prior_ = (s + n_positive) / (2 * s + n_known)

        # Equations 6 and 7: P(C = j | H) = (s + c[j]) / (s (k + 1) + sum of c).
        with_label, without = self._count_tables(Y)
        evidence = slice(0, self.k_ + 1)
        likelihood_1, likelihood_0 = (
            (s + c[:, evidence]) / (s * (self.k_ + 1) + c[:, evidence].sum(axis=1, keepdims=True))
            for c in (with_label, without)
        )
        # Equation 3, for every possible count.
        joint_1 = self.prior_[:, None] * likelihood_1
        joint_0 = (1 - self.prior_)[:, None] * likelihood_0
        self.posterior_ = np.column_stack([joint_1 / (joint_1 + joint_0), self.prior_])

    def _count_tables(self, Y: LabelMatrix) -> tuple[np.ndarray, np.ndarray]:
        """c[l, j] and c'[l, j]: training rows with and without l whose count is j."""
        shape = (self.n_labels_, self.k_ + 2)
        tables = np.zeros((2, *shape), dtype=np.int64)
        if self.k_ == 0:
            return tables[0], tables[1]
        nearest = self._search.among_themselves(self.k_)
        offset = np.arange(self.n_labels_) * shape[1]
        for rows in row_chunks(len(Y), self.n_labels_, _CHUNK_ENTRIES):
            cell = self._counts(nearest[rows]) + offset
            truth = Y[rows].to_numpy()
            for table, state in zip(tables, (1, 0), strict=True):
                table += np.bincount(cell[truth == state], minlength=table.size).reshape(shape)
        return tables[0], tables[1]

    def _predict_proba(self, X: Any) -> np.ndarray:
        if self.k_ == 0:
            return np.tile(self.prior_, (X.shape[0], 1))
        nearest = self._search.of(X, self.k_)
        result = np.empty((len(nearest), self.n_labels_))
        label = np.arange(self.n_labels_)
        for rows in row_chunks(len(nearest), self.n_labels_, _CHUNK_ENTRIES):
            result[rows] = self.posterior_[label, self._counts(nearest[rows])]
        return result

    def _counts(self, nearest: np.ndarray) -> np.ndarray:
        """C for each row and label, from the indices of the neighbours of each row."""
        positive = sum_over_neighbors(nearest, self.train_positive_)
        if self.train_known_ is None:
            return positive
        known = sum_over_neighbors(nearest, self.train_known_)
        scaled = np.floor(self.k_ * positive / np.maximum(known, 1) + 0.5).astype(np.int64)
        return np.where(known > 0, scaled, self.k_ + 1)

    def _state(self) -> dict[str, Any]:
        names = ("k_", "train_X_", "train_positive_", "train_known_", "prior_", "posterior_")
        return {name: getattr(self, name) for name in names}

    def _set_state(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._search = NeighborSearch(self.train_X_, self.neighbors, self.n_jobs)

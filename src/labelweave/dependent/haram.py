"""HARAM: a hierarchical adaptive resonance associative map for many labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.dependent._label_sets import label_set_codes
from labelweave.dependent.haram_boxes import Boxes, grow_boxes
from labelweave.labels import LabelMatrix
from labelweave.rows import row_chunks

__all__ = ["HARAM"]

_SPARSE_BELOW = 0.2  # share of entries that are not zero


class HARAM(MultiLabelClassifier):
    """Hierarchical adaptive resonance associative map [1]_.

    Training covers the rows of each label set with boxes (category nodes). Among the boxes of its
    label set that match a row well enough, the one with the largest choice value is extended to
    contain the row; if none matches, the row becomes a new box. At prediction the boxes whose
    activation is close to the largest one vote for their labels.

    With complement-coded input I = (a, 1 - a) and box w, in the notation of fuzzy ART:

    * match ``|I AND w| / |I|`` must exceed the `vigilance`;
    * choice and activation ``T = |I AND w| / |w|``;
    * fast learning ``w <- I AND w``;
    * boxes j with ``(T_max - T_j) / T_max <= activation_drop (T_max - T_min)`` are active, and
      ``P(label) = sum T_j n_j y_j / sum T_j n_j`` over them, n_j the number of rows of box j.

    ``threshold="largest-drop"`` is the paper's decision: the ranked labels up to the largest fall
    of the score.

    Parameters
    ----------
    vigilance : float, default=0.9
        From 0 (large boxes) to 1 (a box for every row).
    activation_drop : float, default=0.05
        How far below the largest activation a box may be and still vote. The public
        implementation uses 0.02, which ranks worse.
    cluster_vigilance : float, optional
        Vigilance of the second layer, a fuzzy ART that clusters the boxes; then only the boxes
        of the `open_clusters` most active clusters are activated. None activates all boxes.
    open_clusters : int, default=5
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. Nothing in
        this method is random; the seed picks the rows held out to tune a threshold.

    Attributes
    ----------
    lower_, upper_ : ndarray or csr_array of shape (n_boxes, n_features)
        The corners of the boxes, in the order in which they were made.
    box_rows_ : ndarray of shape (n_boxes,)
        Number of training rows of each box.
    box_positive_, box_known_ : csr_array of shape (n_boxes, n_labels)
        The label set of each box, and which labels its rows know (None if all).
    clusters_ : ndarray of shape (n_boxes,), or None
        The cluster of each box.
    shift_, scale_ : ndarray of shape (n_features,), or None
        What brings the features into the unit cube.

    Notes
    -----
    Features that are not all between 0 and 1 are divided by their largest value in training,
    after a shift by the smallest where that is negative; values outside the range seen are
    clipped. (The public implementation scales by the range of all features together, and the rows
    to predict by the range of the same batch, so that a prediction depends on the other rows.)

    Unknown entries: rows are in one label set only if the same labels are unknown in them, so that
    all rows of a box have the same known labels; the box votes only on those. If a label is
    unknown in all active boxes, its frequency is predicted.

    The second layer saves time if there are many boxes that are far apart; without it the
    activation of all boxes is exact. The paper always uses it.

    References
    ----------
    .. [1] F. Benites and E. Sapozhnikova. HARAM: a hierarchical ARAM neural network for
       large-scale text classification. ICDM Workshops 2015, pages 847-854.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.haram import HARAM
    >>> X = np.array([[0.0, 0.1], [0.1, 0.0], [0.9, 1.0], [1.0, 0.9]])
    >>> model = HARAM().fit(X, [["sea"], ["sea"], ["sea", "sun"], ["sea", "sun"]])
    >>> model.predict_labels([[0.0, 0.0], [1.0, 1.0]])
    [['sea'], ['sea', 'sun']]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "vigilance": [Interval(Real, 0, 1, closed="both")],
        "activation_drop": [Interval(Real, 0, None, closed="left")],
        "cluster_vigilance": [Interval(Real, 0, 1, closed="both"), None],
        "open_clusters": [Interval(Integral, 1, None, closed="left")],
    }

    tuning_space: ClassVar = {
        "vigilance": ("float", 0.7, 0.99),
        "activation_drop": ("log", 0.005, 1.0),
    }

    def __init__(
        self,
        vigilance: float = 0.9,
        activation_drop: float = 0.05,
        cluster_vigilance: float | None = None,
        open_clusters: int = 5,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.vigilance = vigilance
        self.activation_drop = activation_drop
        self.cluster_vigilance = cluster_vigilance
        self.open_clusters = open_clusters
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return the method with the settings of the public implementation.

        The label sets are those of the paper: labels before the largest drop of their ranks.
        """
        return cls(vigilance=0.9, activation_drop=0.02, threshold="largest-drop")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.randomized = False
        return tags

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        positives, known = Y.counts()
        self.frequency_ = positives / known
        self._learn_scale(X)
        A = self._scaled(X)
        sets = label_set_codes(Y)
        order = np.argsort(sets, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(sets[order])) + 1)
        # A row with a label set that no other row has is a box.
        alone = np.array([g[0] for g in groups if len(g) == 1], dtype=np.intp)
        lower, upper, first, count = [A[alone]], [A[alone]], [alone], [np.ones(len(alone), int)]
        for rows in groups:
            if len(rows) == 1:
                continue
            points = A[rows].toarray() if sp.issparse(A) else A[rows]
            low, high, owner = grow_boxes(points, points, self.vigilance)
            lower.append(low)
            upper.append(high)
            first.append(rows[np.unique(owner, return_index=True)[1]])
            count.append(np.bincount(owner))
        made = np.argsort(np.concatenate(first), kind="stable")
        stack = (lambda parts: sp.vstack(parts, "csr")) if sp.issparse(A) else np.vstack
        self.lower_: Any
        self.upper_: Any
        self.lower_, self.upper_ = (
            stack([sp.csr_array(p) if sp.issparse(A) else p for p in parts])[made]
            for parts in (lower, upper)
        )
        self.box_rows_ = np.concatenate(count)[made]
        rows = np.concatenate(first)[made]
        self.box_positive_ = sp.csr_array(Y[rows].positive()).astype(A.dtype)
        known_entries = Y.known()
        if known_entries is None:
            self.box_known_ = None
        else:
            self.box_known_ = sp.csr_array(known_entries[rows]).astype(A.dtype)
        self._learn_clusters()
        self._prepare()

    def _learn_scale(self, X: Any) -> None:
        least, most = (_column_extreme(X, how) for how in ("min", "max"))
        inside = least.min() >= 0 and most.max() <= 1
        shift = np.minimum(least, 0)
        span = np.where(most > shift, most - shift, 1)
        self.shift_ = None if inside else shift.astype(X.dtype)
        self.scale_ = None if inside else span.astype(X.dtype)
        n_used = X.nnz if sp.issparse(X) else np.count_nonzero(X)
        self.is_sparse_ = bool(not shift.any() and n_used < _SPARSE_BELOW * np.prod(X.shape))

    def _scaled(self, X: Any) -> Any:
        """The features in the unit cube, sparse where that pays."""
        if self.is_sparse_:
            A = sp.csr_array(X, copy=True)
            if self.scale_ is not None:
                A.data = A.data / self.scale_[A.indices]
            A.data = np.clip(A.data, 0, 1)
            A.eliminate_zeros()
            return A
        A = X.toarray() if sp.issparse(X) else X
        if self.scale_ is not None:
            A = (A - self.shift_) / self.scale_
        return np.clip(A, 0, 1)

    def _learn_clusters(self) -> None:
        self.clusters_: np.ndarray | None = None
        self.cluster_lower_: np.ndarray | None = None
        self.cluster_upper_: np.ndarray | None = None
        if self.cluster_vigilance is None:
            return
        low, high = (c.toarray() if sp.issparse(c) else c for c in (self.lower_, self.upper_))
        clusters = grow_boxes(low, high, self.cluster_vigilance)
        self.cluster_lower_, self.cluster_upper_, self.clusters_ = clusters

    def _prepare(self) -> None:
        """Build what prediction needs from the fitted attributes."""
        self._boxes = Boxes(self.lower_, self.upper_)
        self._parts: list[tuple[np.ndarray, Boxes]] = []
        self._hulls: Boxes | None = None
        if self.clusters_ is not None:
            self._hulls = Boxes(self.cluster_lower_, self.cluster_upper_)
            members = [np.flatnonzero(self.clusters_ == c) for c in range(len(self._hulls))]
            self._parts = [(of, Boxes(self.lower_[of], self.upper_[of])) for of in members]

    def _predict_proba(self, X: Any) -> np.ndarray:
        result = np.empty((X.shape[0], self.n_labels_))
        for rows in row_chunks(X.shape[0], max(X.shape[1], len(self._boxes), self.n_labels_)):
            result[rows] = self._votes(self._activations(self._scaled(X[rows])))
        return result

    def _activations(self, A: Any) -> np.ndarray:
        """T of each box; NaN if its cluster is not among the most active ones."""
        if self._hulls is None:
            return self._boxes.overlaps(A) / np.maximum(self._boxes.norms, 1e-13)
        of_clusters = self._hulls.overlaps(A) / np.maximum(self._hulls.norms, 1e-13)
        opened = np.argsort(-of_clusters, axis=1, kind="stable")[:, : self.open_clusters]
        activations = np.full((A.shape[0], len(self._boxes)), np.nan, dtype=of_clusters.dtype)
        for c, (members, boxes) in enumerate(self._parts):
            rows = np.flatnonzero((opened == c).any(axis=1))
            if len(rows):
                active = boxes.overlaps(A[rows]) / np.maximum(boxes.norms, 1e-13)
                activations[np.ix_(rows, members)] = active
        return activations

    def _votes(self, activation: np.ndarray) -> np.ndarray:
        best = np.nanmax(activation, axis=1, keepdims=True)
        least = np.nanmin(activation, axis=1, keepdims=True)
        # All activations may be 0: those of boxes in the corner opposite to the row.
        limit = best - self.activation_drop * (best - least) * best
        rows, boxes = np.nonzero(activation >= limit)
        weight = np.maximum(activation[rows, boxes], 1e-13) * self.box_rows_[boxes]
        votes = sp.csr_array((weight, (rows, boxes)), shape=activation.shape)
        positive = (votes @ self.box_positive_).toarray()
        if self.box_known_ is None:
            return positive / np.asarray(votes.sum(axis=1)).reshape(-1, 1)
        known = (votes @ self.box_known_).toarray()
        return np.where(known > 0, positive / np.where(known > 0, known, 1), self.frequency_)

    def _state(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name in _STATE}

    def _set_state(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._prepare()


_STATE = (
    "frequency_", "shift_", "scale_", "is_sparse_", "lower_", "upper_", "box_rows_",
    "box_positive_", "box_known_", "clusters_", "cluster_lower_", "cluster_upper_",
)  # fmt: skip


def _column_extreme(X: Any, how: str) -> np.ndarray:
    """The smallest or largest value of each column."""
    values = getattr(X, how)(axis=0)
    return values.toarray().ravel() if sp.issparse(values) else np.asarray(values).ravel()

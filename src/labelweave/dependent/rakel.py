"""RAkEL: label powersets over small random sets of labels."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from joblib import Parallel, delayed
from sklearn.utils._param_validation import HasMethods, Interval

from labelweave.base import MultiLabelClassifier, Pair, WeightedClassifier
from labelweave.dependent.powerset import completed, fit_label_sets, label_probabilities
from labelweave.known_labels import KnownLabelsMixin
from labelweave.labels import LabelMatrix
from labelweave.shallow.per_label import InnerClassifierMixin, seeded_clones, with_int32_indices

__all__ = ["RAkEL"]


class RAkEL(KnownLabelsMixin, InnerClassifierMixin, WeightedClassifier):
    """Random k-labelsets [1]_.

    The labels are divided into small random groups, and each group has a label powerset (a
    classifier whose classes are the label sets within the group). In RAkEL\\ :sub:`d` every label
    is in one group; in RAkEL\\ :sub:`o` groups overlap, and the probability of a label is the mean
    over its groups.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        Cloned for each group; ``LogisticRegression(max_iter=10_000)`` by default.
    k : int, default=3
        Number of labels per group.
    overlapping : bool, default=False
        False is RAkEL\\ :sub:`d`, True is RAkEL\\ :sub:`o`.
    n_groups : int, optional
        Number of overlapping groups; twice the number of labels by default, as in the paper.
    n_jobs : int, optional
        Number of groups fitted in parallel by joblib; None means one.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`. The seed draws
        the groups.

    Attributes
    ----------
    groups_ : list of ndarray
        The positions of the labels of each group.
    estimators_ : list of classifiers
        None for a group with a single label set.
    sets_ : list of csr_array
        The label sets of each group.

    Notes
    -----
    Departures: the paper counts votes of label sets; here the probabilities of a group's sets are
    summed. Overlapping groups are taken in turn from random permutations of all labels, so that
    every label is in at least one group; the paper draws each group independently.

    Unknown entries are filled in as in :class:`~labelweave.dependent.powerset.LabelPowerset`. A
    known label changes the predictions of the labels in its groups.

    References
    ----------
    .. [1] G. Tsoumakas, I. Katakis and I. Vlahavas. Random k-labelsets for multilabel
       classification. IEEE Transactions on Knowledge and Data Engineering 23(7), 2011, pages
       1079-1089.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.rakel import RAkEL
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 5)
    >>> model = RAkEL(k=2, random_state=0).fit(X, np.hstack([X, 1 - X]).astype(int))
    >>> model.predict([[1, 1], [0, 1]])
    array([[1, 1, 0, 0],
           [0, 1, 1, 0]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "k": [Interval(Integral, 1, None, closed="left")],
        "overlapping": ["boolean"],
        "n_groups": [Interval(Integral, 1, None, closed="left"), None],
        "n_jobs": [int, None],
    }

    tuning_space: ClassVar = {
        "estimator__C": ("log", 1e-3, 1e3),
        "k": ("int", 2, 6),
        "overlapping": ("choice", [False, True]),
    }

    def __init__(
        self,
        estimator: Any = None,
        k: int = 3,
        overlapping: bool = False,
        n_groups: int | None = None,
        n_jobs: int | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.k = k
        self.overlapping = overlapping
        self.n_groups = n_groups
        self.n_jobs = n_jobs
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"k": 2}  # with the three labels of the checks, one group depends on the seed

    def _fit(
        self,
        X: Any,
        Y: LabelMatrix,
        validation: Pair | None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        template = self._template()
        X = with_int32_indices(X)
        random = self._generator()
        self.groups_ = self._draw_groups(random)
        Y = completed(X, Y, template, self.random_state, sample_weight)
        clones = seeded_clones(self, template, len(self.groups_))
        fitted = Parallel(n_jobs=self.n_jobs)(
            delayed(fit_label_sets)(estimator, X, Y[:, group], 2 ** len(group), sample_weight)
            for estimator, group in zip(clones, self.groups_, strict=True)
        )
        self.estimators_ = [estimator for estimator, _ in fitted]
        self.sets_: list[sp.csr_array] = [sets for _, sets in fitted]

    def _draw_groups(self, random: Any) -> list[np.ndarray]:
        """Groups of k labels; the last of disjoint groups may be smaller."""
        n_labels = self.n_labels_
        k = min(self.k, n_labels)
        if not self.overlapping:
            return np.split(random.permutation(n_labels), range(k, n_labels, k))
        groups: list[np.ndarray] = []
        left: list[int] = []
        n_groups = max(self.n_groups or 2 * n_labels, -(-n_labels // k))
        while len(groups) < n_groups:
            if len(left) < k:  # append a new permutation without repeating a label in the group
                labels = random.permutation(n_labels).tolist()
                new = [j for j in labels if j not in left]
                left = [*left, *new, *(j for j in labels if j in left)]
            groups.append(np.array(left[:k]))
            left = left[k:]
        return groups

    def _predict_proba(self, X: Any, known: np.ndarray | None = None) -> np.ndarray:
        X = with_int32_indices(X)
        total = np.zeros((X.shape[0], self.n_labels_))
        counts = np.zeros(self.n_labels_)
        for group, estimator, sets in zip(self.groups_, self.estimators_, self.sets_, strict=True):
            known_in_group = None if known is None else known[:, group]
            total[:, group] += label_probabilities(estimator, sets, X, known_in_group)
            counts[group] += 1
        return total / counts

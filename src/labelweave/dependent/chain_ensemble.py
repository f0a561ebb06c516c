"""An ensemble of classifier chains with random orders of the labels."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from labelweave.base import MultiLabelClassifier, Pair, WeightedClassifier
from labelweave.class_weights import CLASS_WEIGHT
from labelweave.dependent.chain import ClassifierChain
from labelweave.known_labels import KnownLabelsMixin
from labelweave.labels import LabelMatrix
from labelweave.shallow.per_label import (
    InnerClassifierMixin,
    fit_with_weights,
    weights_by_class,
)

__all__ = ["EnsembleOfChains"]


class EnsembleOfChains(KnownLabelsMixin, InnerClassifierMixin, WeightedClassifier):
    """Several classifier chains, each in a random order and on a random part of the rows [1]_.

    Parameters
    ----------
    estimator : scikit-learn classifier, optional
        As for :class:`~labelweave.dependent.chain.ClassifierChain`.
    n_chains : int, default=10
    max_samples : float, default=0.67
        Share of the rows that each chain is fitted to, drawn without replacement.
    pass_on : {"labels", "probabilities"}, default="labels"
        As for :class:`~labelweave.dependent.chain.ClassifierChain`.
    class_weight : "balanced" or mapping of label to number, optional
        Weights of positives, as in :mod:`labelweave.class_weights`.
    n_jobs : int, optional
        Number of chains fitted in parallel by joblib; None means one.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    chains_ : list of ClassifierChain

    Notes
    -----
    Departure from the paper: it counts the chains that vote for a label; here their probabilities
    are averaged, which gives a finer ranking.

    Unknown entries and known labels are handled as in a single chain. If a label has no known
    entry among the rows drawn for a chain, the rows in which it is known are added.

    References
    ----------
    .. [1] J. Read, B. Pfahringer, G. Holmes and E. Frank. Classifier chains for multi-label
       classification. Machine Learning 85(3), 2011, pages 333-359.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.chain_ensemble import EnsembleOfChains
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 5)
    >>> model = EnsembleOfChains(random_state=0).fit(X, X.astype(int))
    >>> model.predict([[1, 1], [0, 1]])
    array([[1, 1],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict"]), None],
        "n_chains": [Interval(Integral, 1, None, closed="left")],
        "max_samples": [Interval(Real, 0, 1, closed="right")],
        "pass_on": [StrOptions({"labels", "probabilities"})],
        "class_weight": CLASS_WEIGHT,
        "n_jobs": [int, None],
    }

    tuning_space: ClassVar = ClassifierChain.tuning_space

    def __init__(
        self,
        estimator: Any = None,
        n_chains: int = 10,
        max_samples: float = 0.67,
        pass_on: str = "labels",
        class_weight: Any = None,
        n_jobs: int | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.n_chains = n_chains
        self.max_samples = max_samples
        self.pass_on = pass_on
        self.class_weight = class_weight
        self.n_jobs = n_jobs
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {"n_chains": 3}

    def _fit(
        self,
        X: Any,
        Y: LabelMatrix,
        validation: Pair | None,
        sample_weight: np.ndarray | None = None,
    ) -> None:
        # Weights of classes become weights of rows, and the chains weigh the labels.
        sample_weight, label_weight = weights_by_class(self, Y, sample_weight)
        class_weight = None if label_weight is None else self.class_weight
        random = self._generator()
        size = max(1, round(self.max_samples * len(Y)))
        draws = [random.permutation(len(Y))[:size] for _ in range(self.n_chains)]
        draws = [_with_all_labels(Y, np.sort(rows)) for rows in draws]
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_chains).tolist()
        chains = [
            ClassifierChain(self.estimator, "random", self.pass_on, class_weight, random_state=seed)
            for seed in seeds
        ]
        self.chains_ = Parallel(n_jobs=self.n_jobs)(
            delayed(fit_with_weights)(
                chain, X[rows], Y[rows], None if sample_weight is None else sample_weight[rows]
            )
            for chain, rows in zip(chains, draws, strict=True)
        )

    def _predict_proba(self, X: Any, known: np.ndarray | None = None) -> np.ndarray:
        return np.mean([chain._predict_proba(X, known) for chain in self.chains_], axis=0)


def _with_all_labels(Y: LabelMatrix, rows: np.ndarray) -> np.ndarray:
    """The drawn rows, plus the known rows of labels that have no known entry among them."""
    _, known = Y[rows].counts()
    for j in np.flatnonzero(known == 0):
        column = Y[:, [j]].to_numpy().ravel()
        rows = np.union1d(rows, np.flatnonzero(~np.isnan(column)))
    return rows

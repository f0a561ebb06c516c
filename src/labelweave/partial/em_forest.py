"""Cross-fitted expectation maximisation, averaged with trees trained on its soft targets."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval

from labelweave.exceptions import InputError
from labelweave.partial._selection.partial_run import PartialRun
from labelweave.partial._selection.posterior import logit_shift, shifted
from labelweave.partial.cross_em import CrossFitEM
from labelweave.shallow.forest import Forest, Splits, grow_forest
from labelweave.unannotated import assume_negative

__all__ = ["EMForest"]

_NEGLIGIBLE = 1e-3  # smaller soft targets are not stored


class EMForest(CrossFitEM):
    """Cross-fitted expectation maximisation with networks and extra trees.

    After the networks of :class:`~labelweave.partial.cross_em.CrossFitEM` there is one more M-step:
    extra trees are trained with the target 1 for annotated positives and the out-of-fold
    probabilities of the networks for unannotated entries. The prediction is the mean of networks
    and trees.

    Trees are strong on small tables, and their errors differ from those of networks. Trained on the
    annotations alone they would miss most positives; the soft targets add the missing ones.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
        The network to train, for features, not for images.
    n_trees : int, default=300
        Number of trees of all folds together. The trees of a fold are grown on all other folds.
    forest_weight : float, default=0.5
        Weight of the trees in the mean.
    n_folds, rounds, ramp, negative_weight, soft_weight, label_evidence
        As in :class:`~labelweave.partial.cross_em.CrossFitEM`.
    unannotated, validation, monitor, threshold, validation_fraction, random_state
        As in :class:`~labelweave.partial.base.PartialClassifier`.

    Attributes
    ----------
    targets_ : csr_array of shape (n_rows, n_labels)
        The targets of the trees, for all training rows.
    forests_ : list of Forest
        One per fold.
    fold_ : ndarray of shape (n_rows,)
        The fold of each training row.

    Notes
    -----
    The trees are those of scikit-learn (P. Geurts, D. Ernst and L. Wehenkel. Extremely randomized
    trees. Machine Learning 63(1), 2006) with its defaults for classification, over all labels
    together.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from labelweave.data.scenarios import hide_positives
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> partial = hide_positives(Y, 0.5, random_state=0).Y
    >>> model = EMForest(n_folds=2, random_state=0).set_params(base__epochs=5).fit(X, partial)
    >>> model.predict_proba(X[:3]).shape
    (3, 5)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CrossFitEM._parameter_constraints,
        "n_trees": [Interval(Integral, 1, None, closed="left")],
        "forest_weight": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        base: Any = "mlp",
        *,
        n_trees: int = 300,
        forest_weight: float = 0.5,
        n_folds: int = 4,
        rounds: int = 1,
        ramp: float | str = "auto",
        negative_weight: float | str = "auto",
        soft_weight: float | str = "auto",
        label_evidence: bool = True,
        unannotated: str = "auto",
        validation: str = "partial",
        monitor: str = "auto",
        threshold: Any = "cardinality",
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            base,
            n_folds=n_folds,
            rounds=rounds,
            ramp=ramp,
            negative_weight=negative_weight,
            soft_weight=soft_weight,
            label_evidence=label_evidence,
            unannotated=unannotated,
            validation=validation,
            monitor=monitor,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.n_trees = n_trees
        self.forest_weight = forest_weight

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.images = False  # trees grow on features
        return tags

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        if self._image_encoder() is not None:
            raise InputError(
                "em-forest grows trees on features, not on images: use cross-em", parameter="base"
            )
        return super()._checked_features(X, reset=reset)

    def _train(self, run: PartialRun) -> None:
        scores = self._train_rounds(run)
        session = run.session
        codes = session.Y.to_numpy()
        known, negligible = np.abs(codes) == 1, scores < _NEGLIGIBLE
        targets = np.where(known, codes == 1, np.where(negligible, 0, scores))
        self.targets_ = sp.csr_array(targets.astype(np.float32))
        self.fold_ = self._folds(session)
        random = np.random.RandomState(session.seed % 2**32)
        self.forests_ = [
            grow_forest(
                session.X[self.fold_ != k],
                self.targets_[self.fold_ != k],
                n_trees=-(-self.n_trees // self.n_folds),
                max_features="sqrt",
                random=random,
            )
            for k in range(self.n_folds)
        ]
        tree_scores = np.empty_like(scores)
        for k in range(self.n_folds):
            held_out = self.fold_ == k
            tree_scores[held_out] = self._tree_scores(k, session.X[held_out])
        mean = self._mean(scores, tree_scores)
        self._shift = logit_shift(mean, codes)
        self._out_of_fold = assume_negative(session.Y), shifted(mean, self._shift)

    def _tree_scores(self, k: int, X: Any) -> np.ndarray:
        """The scores of the trees of a fold for these rows."""
        targets = self.targets_[self.fold_ != k]
        scores = np.empty((X.shape[0], targets.shape[1]), np.float32)
        for rows, weights in self.forests_[k].weights(X, targets.shape[1]):
            scores[rows] = (weights @ targets).toarray()
        return np.clip(scores, 0, 1)

    def _mean(self, network_scores: np.ndarray, tree_scores: np.ndarray) -> np.ndarray:
        return (1 - self.forest_weight) * network_scores + self.forest_weight * tree_scores

    def _predict_proba(self, X: Any) -> np.ndarray:
        n_forests = len(self.forests_)
        tree_scores = sum(self._tree_scores(k, X) for k in range(n_forests)) / n_forests
        mean = self._mean(super()._predict_proba(X), np.asarray(tree_scores))
        return shifted(mean, self._shift)

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {**super()._test_params(), "n_trees": 20}

    def _state(self) -> dict[str, Any]:
        forests = [{**vars(forest.splits), "members": forest.members} for forest in self.forests_]
        return {
            **super()._state(),
            "targets": self.targets_,
            "fold": self.fold_,
            "forests": forests,
            "shift": self._shift,
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.targets_, self.fold_ = state["targets"], state["fold"]
        self._shift = state["shift"]
        self.forests_ = []
        for stored in state["forests"]:
            splits = {name: value for name, value in stored.items() if name != "members"}
            forest = Forest(Splits(**splits), stored["members"])
            forest.check(self._n_columns, int((self.fold_ != len(self.forests_)).sum()))
            self.forests_.append(forest)

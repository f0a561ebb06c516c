"""Cross-fitted expectation maximisation, and a forest that learns what its networks found."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.utils._param_validation import Interval
from torch import nn

from labelweave.exceptions import InputError
from labelweave.nn.session import TrainingSession
from labelweave.partial._selection.posterior import count_shift, shifted
from labelweave.partial.cross_em import CrossFitEM
from labelweave.shallow.forest import Forest, Splits, grow_forest
from labelweave.unannotated import assume_negative

__all__ = ["EMForest"]

_NOTHING = 1e-3  # chances below are not stored


class EMForest(CrossFitEM):
    """Cross-fitted expectation maximisation over networks and extra trees.

    After the networks of :class:`~labelweave.partial.cross_em.CrossFitEM` comes one more M-step:
    extra trees learn 1 where a positive is annotated and elsewhere the chance that networks gave
    which did not learn the row. The prediction is the mean of networks and trees.

    Trees are strong on small tables and fail elsewhere than networks do. By themselves they see few
    of the positives, as few are annotated; the networks' chances give them the others.

    Parameters
    ----------
    base : str or neural estimator, default="mlp"
        The network, one that reads features, not images.
    n_trees : int, default=300
        Over all folds together: those of a fold are grown on the rows of all others.
    forest_weight : float, default=0.5
        Of the trees in the mean.
    **em
        As in :class:`~labelweave.partial.cross_em.CrossFitEM`.

    Attributes
    ----------
    targets_ : csr_array of shape (n_rows, n_labels)
        What the trees learn, of all training rows.
    forests_ : list of Forest
        One a fold.
    fold_ : ndarray of shape (n_rows,)
        Of each training row.

    Notes
    -----
    Trees of scikit-learn (P. Geurts, D. Ernst and L. Wehenkel. Extremely randomized trees. Machine
    Learning 63(1), 2006) with its defaults for classification, over all labels together.

    That trees help, and an even mean, was seen with one forest on all rows: on rows held out of the
    training parts of scene, yeast and tmc2007-500 the mean was above the networks on each of five
    lines; on yeast the forest alone was better still. Trees a fold, as they are here, were not
    compared there (``benchmarks/partial_quality.py --part training`` would).

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
        **em: Any,
    ) -> None:
        super().__init__(base, **em)
        self.n_trees = n_trees
        self.forest_weight = forest_weight

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        if self._image_encoder() is not None:
            raise InputError("em-forest grows trees on features, not on images: take cross-em")
        return super()._checked_features(X, reset=reset)

    def _learn(self, network: nn.Module, session: TrainingSession) -> None:
        scores = self._learn_folds(network, session)
        codes = session.Y.to_numpy()
        chances = np.where(np.abs(codes) == 1, codes == 1, np.where(scores < _NOTHING, 0, scores))
        self.targets_ = sp.csr_array(chances.astype(np.float32))
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
        trees = np.empty_like(scores)
        for k in range(self.n_folds):
            held = self.fold_ == k
            trees[held] = self._asked(k, session.X[held])
        mean = self._mean(scores, trees)
        self._shift = count_shift(mean, codes)
        self._out_of_fold = assume_negative(session.Y), shifted(mean, self._shift)

    def _asked(self, k: int, X: Any) -> np.ndarray:
        """What the trees of a fold say of these rows."""
        learnt = self.targets_[self.fold_ != k]
        found = np.empty((X.shape[0], learnt.shape[1]), np.float32)
        for rows, weights in self.forests_[k].weights(X, learnt.shape[1]):
            found[rows] = (weights @ learnt).toarray()
        return np.clip(found, 0, 1)

    def _mean(self, networks: np.ndarray, trees: np.ndarray) -> np.ndarray:
        return (1 - self.forest_weight) * networks + self.forest_weight * trees

    def _predict_proba(self, X: Any) -> np.ndarray:
        trees = sum(self._asked(k, X) for k in range(len(self.forests_))) / len(self.forests_)
        return shifted(self._mean(super()._predict_proba(X), np.asarray(trees)), self._shift)

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        return {**super()._test_params(), "n_trees": 20}

    def _state(self) -> dict[str, Any]:
        forests = [{**vars(forest.splits), "members": forest.members} for forest in self.forests_]
        own = {
            "targets": self.targets_,
            "fold": self.fold_,
            "forests": forests,
            "shift": self._shift,
        }
        return {**super()._state(), **own}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.targets_, self.fold_ = state["targets"], state["fold"]
        self._shift = state["shift"]
        self.forests_ = []
        for kept in state["forests"]:
            splits = {name: value for name, value in kept.items() if name != "members"}
            self.forests_.append(Forest(Splits(**splits), kept["members"]))

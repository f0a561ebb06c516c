"""The estimator contract: what every method of labelweave is and does.

A method that learns from labelled rows subclasses :class:`MultiLabelClassifier` and writes two
functions: ``_fit(X, Y, validation)``, which receives checked features and a
:class:`~labelweave.labels.LabelMatrix`, and ``_predict_proba(X)``, which returns P(label | x) as an
(n, L) array. A method whose rows have weights subclasses :class:`WeightedClassifier`. What all
estimators share, however they are fitted (checks, label names, thresholds, predictions, scores,
saving), is in :class:`~labelweave.predictor.MultiLabelPredictor`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self, final

import numpy as np
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.input_checks import as_single_target, check_weight
from labelweave.labels import LabelMatrix, as_labels
from labelweave.predictor import MultiLabelPredictor, Pair
from labelweave.tables.table import Table
from labelweave.thresholds import make_threshold
from labelweave.top_labels import MANY_LABELS

__all__ = ["MultiLabelClassifier", "Pair", "WeightedClassifier"]


class MultiLabelClassifier(MultiLabelPredictor):
    """Base of the estimators that are fitted to labelled rows.

    Its parameters and attributes are those of :class:`~labelweave.predictor.MultiLabelPredictor`.
    """

    _validation_weight: np.ndarray | None = None  # during `fit`

    # -- what a method writes ----------------------------------------------------------

    @abstractmethod
    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        """Learn from checked features and labels; `validation` may be None."""

    def _needs_validation(self) -> bool:
        """Whether `_fit` needs validation rows, for early stopping for instance."""
        return False

    # -- fitting -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any, *, validation: Any = None) -> Self:
        """Fit to features and labels.

        Parameters
        ----------
        X : array-like, SciPy sparse or DataFrame of shape (n, d)
            A DataFrame may have columns of any kind; see :mod:`labelweave.tables`.
        y : labels of the n rows
            1 / 0 / NaN (unknown) as array, sparse matrix, DataFrame or LabelMatrix, or lists of
            label names. A one-dimensional y holds one class per row.
        validation : Dataset or (X, Y), optional
            Rows on which to stop early and tune the threshold. Without it a share of the
            training rows is held out when one of the two needs them. A method with the
            capability `out_of_fold` learns from these rows as well.

        Returns
        -------
        self
        """
        return self._fit_checked(X, y, validation, self._fit)

    @final
    def _fit_checked(
        self,
        X: Any,
        y: Any,
        validation: Any,
        learn: Callable[..., None],
        sample_weight: Any = None,
    ) -> Self:
        """Check the data, hold rows out if needed, learn, and tune the threshold.

        These steps are the same for all methods; `learn` is `_fit` or trains on another objective.
        No method overrides `fit`: only the base of a room does whose `fit` takes further arguments.
        """
        self._validate_params()
        self.__dict__.pop("_loaded_from", None)
        X, Y = self._checked_training_data(X, y)
        able = capabilities(self)
        weight = check_weight(sample_weight, Y.n_rows)
        if weight is not None:
            if not able.sample_weight:
                raise InputError(f"this {type(self).__name__} takes no sample_weight")
            counted = weight > 0  # the others are as good as absent
            if not counted.all():
                kept = np.flatnonzero(counted)
                X = [X[i] for i in kept] if isinstance(X, list) else X[kept]
                Y, weight = self._with_known_entries(Y[kept]), weight[kept]
        if able.label_prevalence:
            positives, known = Y.counts()
            self.label_prevalence_ = positives / known
        rule = make_threshold(self._threshold_rule())
        held_out = None
        self._validation_weight = None
        must_tune = rule.needs_validation and not able.out_of_fold
        if validation is None and (must_tune or self._needs_validation()):
            rows = self._rows_to_hold_out(X, Y)
            if rows is not None:
                rest, held = rows
                X, Y, held_out = X[rest], Y[rest], (X[held], Y[held])
                if weight is not None:
                    weight, self._validation_weight = weight[rest], weight[held]
        if isinstance(X, Table):
            X = self._fit_encoder(X, Y)
            if held_out is not None:
                held_out = self._encoded(held_out[0].as_reported()), held_out[1]
        if validation is not None:
            held_out = self._checked_validation(validation)
            if weight is not None:
                self._validation_weight = getattr(validation, "weights", None)
        if held_out is None and must_tune:
            raise _too_few(Y)
        try:
            learn(X, Y, held_out, **({} if weight is None else {"sample_weight": weight}))
        finally:
            del self._validation_weight
        if rule.needs_validation:
            rule.fit(*self._tuning_predictions(held_out, Y))
        self.threshold_ = rule
        return self

    def _checked_training_data(self, X: Any, y: Any) -> tuple[Any, LabelMatrix]:
        X = self._checked_features(X, reset=True)
        Y = self._checked_targets(y)
        check_consistent_length(X, Y)
        return X, Y

    def _threshold_rule(self) -> Any:
        """What the parameter `threshold` stands for."""
        return self.threshold

    def _tuning_predictions(self, held_out: Pair | None, Y: LabelMatrix) -> tuple[LabelMatrix, Any]:
        """Labels and probabilities of rows on which the threshold may be tuned."""
        if capabilities(self).out_of_fold:
            predictions = self._out_of_fold_predictions()
        elif held_out is None:
            predictions = None
        else:
            predictions = (held_out[1], self._scores(held_out[0]))
        if predictions is None:
            raise _too_few(Y)
        return predictions

    def _checked_targets(self, Y: Any) -> LabelMatrix:
        if Y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        flat = as_single_target(Y)
        self._single_label = flat is not None
        if flat is not None:
            check_classification_targets(flat)
            self.classes_, codes = np.unique(flat, return_inverse=True)
            names = [str(value) for value in self.classes_]
            distinct = len(set(names)) == len(names)  # 1 and "1" print alike
            one_hot = np.eye(len(self.classes_), dtype=np.float32)[codes]
            labels = as_labels(one_hot, names=names if distinct else None)
        else:
            labels = as_labels(Y)
            if labels.n_labels == 0:
                raise InputError("Y has no label: it needs at least one column")
            labels = self._with_known_entries(labels)
            self.classes_ = np.tile([0, 1], (labels.n_labels, 1))
        dtype = getattr(Y, "dtype", None)
        plain = isinstance(dtype, np.dtype) and dtype.kind in "iub"
        self._target_dtype = dtype if plain else np.dtype(np.int64)
        self.label_names_ = np.asarray(labels.names, dtype=object)
        self.label_descriptions_ = dict(labels.descriptions)
        self.n_labels_ = labels.n_labels
        return labels

    def _with_known_entries(self, labels: LabelMatrix) -> LabelMatrix:
        """The labels to learn from: each must have a known entry."""
        _, known = labels.counts()
        if not known.all():
            blank = labels.names[int(np.argmin(known > 0))]
            raise InputError(
                f"the label {blank!r} has no known entry in the training rows: leave it out",
                parameter="Y",
            )
        return labels

    def _rows_to_hold_out(self, X: Any, Y: LabelMatrix) -> tuple[np.ndarray, np.ndarray] | None:
        """Numbers of the rows to train on and to hold out; None if there are too few.

        Rows that are equal are on one side.
        """
        from labelweave.data.splits import random_holdout, stratified_holdout

        if len(Y) < 5:
            return None
        seed = self._generator().randint(np.iinfo(np.int32).max)
        if Y.n_labels >= MANY_LABELS:
            return random_holdout(len(Y), self.validation_fraction, X=X, random_state=seed)
        return stratified_holdout(Y, self.validation_fraction, X=X, random_state=seed)


class WeightedClassifier(MultiLabelClassifier):
    """Base of the estimators whose `fit` takes weights of the rows.

    Their ``_fit`` has a further parameter, ``sample_weight=None``; the weights are positive.
    Meanwhile `_validation_weight` holds those of the validation rows, or None.
    """

    def fit(self, X: Any, y: Any, *, sample_weight: Any = None, validation: Any = None) -> Self:
        """Fit to features and labels.

        Parameters
        ----------
        X, y, validation
            As for every estimator: see :meth:`MultiLabelClassifier.fit`.
        sample_weight : array-like of shape (n,), optional
            How much each row counts in training: a row of weight 2 as two equal rows, unless the
            method draws rows, splits them into batches or counts them in leaves, and a row of
            weight 0 as none. A network uses the weights of validation rows for early stopping:
            those of held-out rows, or `weights` of a Dataset. Thresholds are tuned without
            weights.

        Returns
        -------
        self
        """
        return self._fit_checked(X, y, validation, self._fit, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.sample_weight = True
        return tags


def _too_few(Y: LabelMatrix) -> InputError:
    return InputError(
        f"{len(Y)} rows are too few to tune a threshold on: pass validation= or a fixed threshold"
    )

"""Labels that are known when a row is predicted: ``predict_proba(X, known=...)``.

Some labels of a new row are often known already: a person has set them, or another system has.
Methods that predict a label from the others can use them. They all take `known` in the same way,
through :class:`KnownLabelsMixin`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from labelweave.base import MultiLabelClassifier
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.labels import as_labels, is_lists_of_names, is_named
from labelweave.predictor import inside

__all__ = ["KnownLabelsMixin"]


class KnownLabelsMixin(MultiLabelClassifier):
    """Mixin of methods that can use known labels of the rows that they predict.

    It comes before the base of the method, ``class Chain(KnownLabelsMixin, NeuralClassifier)``.
    The method writes ``_predict_proba(X, known=None)``, where `known` is None or a float32 array
    of shape (n, L) with 1, 0 and NaN (not known), in the model's order of labels. It uses the
    known labels to predict the *other* labels; the known entries themselves are filled in here.

    A wrapper around another estimator uses the mixin too, and sets the capability `known_labels`
    to that of the estimator.
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.known_labels = True
        return tags

    @abstractmethod
    def _predict_proba(self, X: Any, known: np.ndarray | None = None) -> np.ndarray:
        """P(label | x, known labels) as an (n, L) array, for checked features."""

    def predict_proba(self, X: Any, known: Any = None) -> np.ndarray:
        """P(label | x, known labels), one row per sample and one column per label.

        Parameters
        ----------
        X : array-like, SciPy sparse or DataFrame of shape (n, d)
        known : labels of the n rows, as far as they are known, optional
            1 / 0 / NaN (not known) as array, sparse matrix, DataFrame or LabelMatrix; a DataFrame
            or a LabelMatrix is matched by label name and may leave labels out. Or for each row
            the names of labels that it is known to have; its other labels are then not known.

        Returns
        -------
        ndarray of shape (n, L)
            Exactly 1 and 0 where the label is known.
        """
        if known is None:
            return super().predict_proba(X)
        return self._probabilities_with_known(X, known)[0]

    def predict(self, X: Any, known: Any = None) -> np.ndarray:
        """The predicted label sets, as a matrix of 0 and 1; known labels are unchanged.

        After a one-dimensional target the most probable class of each row.
        """
        if known is None:
            return super().predict(X)
        probabilities, checked = self._probabilities_with_known(X, known)
        return _filled_in(self._label_sets(probabilities), checked)

    def predict_labels(self, X: Any, known: Any = None) -> list[list[str]]:
        """The predicted label sets, as lists of label names."""
        if known is None:
            return super().predict_labels(X)
        return self._named(self.predict(X, known))

    def _probabilities_with_known(self, X: Any, known: Any) -> tuple[np.ndarray, np.ndarray]:
        check_is_fitted(self)
        if not capabilities(self).known_labels:
            raise InputError(
                f"known=: the classifier in this {type(self).__name__} does not predict a label "
                "from others; chains, C-Tran and LaMP do"
            )
        X = self._checked_features(X, reset=False)
        checked = self._checked_known(known)
        check_consistent_length(X, checked)
        probabilities = inside(self._predict_proba(X, checked))
        return _filled_in(probabilities, checked), checked

    def _checked_known(self, known: Any) -> np.ndarray:
        if self._single_label:
            raise InputError("known= is for labels, but the model was fitted to one class per row")
        if is_lists_of_names(known):
            return as_labels(known, names=tuple(self.label_names_), absent="unknown").to_numpy()
        if not is_named(known):
            return self._known_labels(known).to_numpy()
        labels = as_labels(known)
        position = {name: j for j, name in enumerate(self.label_names_)}
        if strange := [name for name in labels.names if name not in position]:
            raise InputError(f"known= has a label {strange[0]!r}, which the model does not know")
        values = np.full((len(labels), self.n_labels_), np.nan, dtype=np.float32)
        values[:, [position[name] for name in labels.names]] = labels.to_numpy()
        return values


def _filled_in(predicted: np.ndarray, known: np.ndarray) -> np.ndarray:
    """The predictions, with known entries as they are known."""
    filled = np.where(np.isnan(known), predicted, np.nan_to_num(known))
    return filled.astype(predicted.dtype, copy=False)

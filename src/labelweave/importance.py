"""Feature importance per label, for the methods that can compute it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from labelweave.base import MultiLabelClassifier
from labelweave.exceptions import InputError

__all__ = ["FeatureImportanceMixin", "column_scales"]


class FeatureImportanceMixin(MultiLabelClassifier):
    """Mixin of methods that compute how important each feature is for each label.

    A method implements ``_feature_importance()``, which returns a non-negative array of shape
    (n_labels, n_features). Its rows are scaled to the sum 1 here; a label that depends on no
    feature stays 0.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.dependent.br import BinaryRelevance
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [0.0, 0.0]] * 5)
    >>> model = BinaryRelevance().fit(X, X.astype(int))
    >>> model.feature_importance().round(2)
    array([[1., 0.],
           [0., 1.]])
    >>> [best for (best, share), *_ in model.top_features(1).values()]
    ['x0', 'x1']
    """

    @abstractmethod
    def _feature_importance(self) -> np.ndarray:
        """Return the importance of each feature for each label, not yet scaled."""

    def _feature_directions(self) -> np.ndarray | None:
        """Return the sign of each feature's weight for each label; None if it has no sign."""
        return None

    def feature_importance(self) -> np.ndarray:
        """Return the importance of features per label, (n_labels, n_features); rows sum to 1.

        After a fit to a table with mixed columns, these are the columns of the table.
        """
        check_is_fitted(self)
        if self._single_label:
            raise InputError("feature importance is computed per label, but the model has classes")
        importance = self._sum_over_columns(self._feature_importance())
        total = importance.sum(axis=1, keepdims=True)
        return np.divide(importance, total, out=np.zeros_like(importance), where=total > 0)

    def feature_directions(self) -> np.ndarray | None:
        """Return whether more of a feature makes a label more (1) or less (-1) probable.

        An array of the shape of :meth:`feature_importance`, or None for models without weights. 0
        means neither, or that several features of a column differ.
        """
        check_is_fitted(self)
        signs = self._feature_directions()
        if signs is None:
            return None
        up, down = (self._sum_over_columns((signs == sign).astype(np.int64)) for sign in (1, -1))
        return np.where(down == 0, np.sign(up), np.where(up == 0, -np.sign(down), 0))

    def top_features(self, k: int = 10) -> dict[str, list[tuple[str, float]]]:
        """Return the `k` most important features of each label, with their importance."""
        shares, names = self.feature_importance(), self._column_names()
        order = np.argsort(-shares, axis=1, kind="stable")[:, :k]
        return {
            str(label): [(names[j], round(float(row[j]), 6)) for j in best if row[j] > 0]
            for label, row, best in zip(self.label_names_, shares, order, strict=True)
        }

    def _sum_over_columns(self, values: np.ndarray) -> np.ndarray:
        """Sums over the features of each column of a table; the values themselves without one."""
        if "table_encoder_" not in vars(self):
            return values
        column = self.table_encoder_.feature_columns_
        features = np.arange(len(column))
        shape = (len(column), self.n_features_in_)
        ones = np.ones(len(column), dtype=values.dtype)
        return values @ sp.csr_array((ones, (features, column)), shape)

    def _column_names(self) -> list[str]:
        unnamed = [f"x{j}" for j in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", unnamed)]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.capabilities.feature_importance = True
        return tags


def column_scales(X: Any) -> np.ndarray:
    """Compute the standard deviation of each column, dense or sparse.

    >>> column_scales(np.array([[1.0, 2.0], [3.0, 2.0]]))
    array([1., 0.])
    """
    mean = np.asarray(X.mean(axis=0)).ravel()
    square = np.asarray((X.multiply(X) if sp.issparse(X) else X * X).mean(axis=0)).ravel()
    return np.sqrt(np.maximum(square - mean**2, 0))

"""What all estimators share, however they are fitted: labels, thresholds, predictions, saving."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from numbers import Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from labelweave.capabilities import capabilities, with_capabilities
from labelweave.exceptions import (
    InputError,
    LabelweaveError,
    LabelweaveWarning,
    ModelFolderError,
    in_one_line,
)
from labelweave.input_checks import LARGEST, as_single_target, first_out_of_range, is_texts
from labelweave.labels import LabelMatrix, as_labels
from labelweave.tables.table import Table, numbers_or_table
from labelweave.thresholds import Threshold, make_threshold
from labelweave.top_labels import TOP_LABELS, predicts_top_labels, top_of_chunks

__all__ = ["MultiLabelPredictor", "inside"]

_TINY = np.finfo(np.float32).tiny
_ALMOST_ONE = np.nextafter(np.float32(1), np.float32(0))

Pair = tuple[Any, LabelMatrix]


class MultiLabelPredictor(ClassifierMixin, BaseEstimator):
    """Base of all estimators: labels, thresholds, predictions, scores, saving.

    How it is fitted is left to subclasses: to labelled rows
    (:class:`~labelweave.base.MultiLabelClassifier`), or to the predictions of other models, as in
    :mod:`labelweave.scattered`.

    Every estimator has these parameters beside its own.

    Parameters
    ----------
    threshold : float, str or Threshold, default=0.5
        How probabilities become label sets; see :mod:`labelweave.thresholds`. A rule that has
        to be tuned is tuned on validation rows only.
    validation_fraction : float, default=0.2
        Share of the rows held out when something has to be chosen on validation rows and
        `fit` was given none.
    random_state : int, RandomState instance or None, default=None
        Seed of everything random; the global generators are never touched.

    Attributes
    ----------
    label_names_ : ndarray of str
        Names of the labels, in the order of the columns of `predict_proba`.
    label_descriptions_ : dict of str to str
        Longer texts for those labels that came with one.
    n_labels_ : int
    label_prevalence_ : ndarray
        Share of positives among the known entries of each label, in the training rows. Only
        with the capability `label_prevalence`.
    threshold_ : Threshold
        The fitted rule that `predict` applies.
    n_features_in_ : int
    table_encoder_ : TableEncoder
        What turns the columns of a mixed table into features. Only after a fit to such a table.
    classes_ : ndarray
        For multi-label targets one row ``[0, 1]`` per label, as scikit-learn writes
        multi-output classes; for one-dimensional targets the classes.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "threshold": [Interval(Real, 0, 1, closed="both"), str, Threshold],
        "validation_fraction": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
    }

    # -- what a method writes ----------------------------------------------------------

    @abstractmethod
    def _predict_proba(self, X: Any) -> np.ndarray:
        """P(label | x) as an (n, L) array, for checked features."""

    def _generator(self) -> np.random.RandomState:
        """The generator of `random_state`; without a seed a new one, never NumPy's global one."""
        if self.random_state is None:
            return np.random.RandomState()
        return check_random_state(self.random_state)

    def _out_of_fold_predictions(self) -> tuple[LabelMatrix, np.ndarray] | None:
        """Labels and out-of-fold probabilities of the rows of the last `fit`, if there are any.

        A method with the capability `out_of_fold` sets `_out_of_fold` in `_fit` (None where rows
        are too few). It is kept in memory only: neither a saved nor a pickled model has it.
        """
        stored = self.__dict__.get("_out_of_fold")
        return None if stored is None else (stored[0], self._as_probabilities(stored[1]))

    # -- what a user calls -------------------------------------------------------------

    def held_out_predictions(self, validation: Any) -> tuple[LabelMatrix, np.ndarray]:
        """Labels and predicted probabilities of rows that the model was not trained on.

        Thresholds and settings must be chosen on such rows. For most methods these are the
        validation rows. A method with the capability `out_of_fold` has learnt from those too:
        it returns out-of-fold probabilities of the training and the validation rows together.

        Parameters
        ----------
        validation : Dataset or (X, Y)
            The validation rows that `fit` was given.

        Returns
        -------
        labels : LabelMatrix
        probabilities : ndarray
            One row per row of `labels`.

        Examples
        --------
        >>> from labelweave.dependent.mlknn import MLkNN
        >>> X, Y = np.eye(6), np.eye(6)[:, :2]
        >>> model = MLkNN(k=2).fit(X[:4], Y[:4])
        >>> labels, probabilities = model.held_out_predictions((X[4:], Y[4:]))
        >>> len(labels), probabilities.shape
        (2, (2, 2))
        """
        check_is_fitted(self)
        if not capabilities(self).out_of_fold:
            pair = self._checked_validation(validation)
            if pair is None:
                raise InputError("pass the validation rows: a Dataset or a pair (X, Y)")
            return pair[1], self._scores(pair[0])
        predictions = self._out_of_fold_predictions()
        if predictions is None:
            raise InputError(
                f"this {type(self).__name__} has no out-of-fold probabilities: it was loaded, or "
                "fitted to too few rows, and it was trained on its validation rows"
            )
        return predictions

    def predict_proba(self, X: Any) -> np.ndarray:
        """P(label | x), one row per sample and one column per label."""
        check_is_fitted(self)
        return self._probabilities(self._checked_features(X, reset=False))

    def predict_top_k(self, X: Any, k: int = TOP_LABELS) -> sp.csr_array:
        """P(label | x) of the k most probable labels of each row, as a sparse matrix.

        With the capability `top_labels` nothing of the size rows x labels is made.

        Examples
        --------
        >>> from labelweave.dependent.mlknn import MLkNN
        >>> model = MLkNN(k=2).fit(np.eye(6), np.eye(6)[:, :3])
        >>> model.predict_top_k(np.eye(6)[:2], k=1).shape
        (2, 3)
        """
        check_is_fitted(self)
        return self._top_probabilities(self._checked_features(X, reset=False), k)

    def predict(self, X: Any) -> np.ndarray:
        """The predicted label sets, as a matrix of 0 and 1.

        After a one-dimensional target the most probable class of each row.
        """
        probabilities = self.predict_proba(X)
        if self._single_label:
            return self.classes_[probabilities.argmax(axis=1)]
        return self._label_sets(probabilities)

    def predict_labels(self, X: Any) -> list[list[str]]:
        """The predicted label sets, as lists of label names."""
        check_is_fitted(self)
        return self._named(self._label_sets(self._scores(self._checked_features(X, reset=False))))

    def tune_threshold(self, X: Any, y: Any = None, threshold: Any = "tuned") -> Self:
        """Tune the threshold of a fitted model again, on rows it was not trained on.

        Without `y`, only a rule that uses no labels can be tuned, such as ``"cardinality"``.
        """
        rule = make_threshold(threshold)
        if y is None and rule.needs_labels:
            raise InputError(
                f"threshold={threshold!r} needs labels: pass y, or threshold='cardinality'"
            )
        check_is_fitted(self)
        scores = self._scores(self._checked_features(X, reset=False))
        # A rule that uses no labels is given none.
        rule.fit(sp.csr_array(scores.shape) if y is None else self._known_labels(y), scores)
        self.threshold_ = rule
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the rows whose whole label set is right; unknown entries are ignored."""
        if self._single_label:
            return super().score(X, y, sample_weight)
        from labelweave.metrics import subset_accuracy

        Y, predicted = self._known_labels(y), self.predict(X)
        return subset_accuracy(Y, predicted, sample_weight=sample_weight)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted model to a folder; :func:`labelweave.load` reads it back."""
        from labelweave.persistence import save

        save(self, path)

    def input_columns(self) -> list[Any] | None:
        """Return the columns of the mixed table that the model was fitted to; None otherwise.

        Each is a :class:`~labelweave.tables.input_columns.InputColumn`: name, kind, whether it may
        be blank.
        """
        check_is_fitted(self)
        if "table_encoder_" not in vars(self):
            return None
        from labelweave.tables.input_columns import columns_of_encoder

        return columns_of_encoder(self.table_encoder_)

    def default_part(self, parameter: str) -> Any:
        """Return the estimator that None or an id stands for in a parameter.

        Parameters of that estimator can then be set (``base__epochs=20``) without naming it.
        None if the parameter holds no estimator.
        """
        return None

    # -- checking ----------------------------------------------------------------------

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        if hasattr(X, "pixels"):
            from labelweave.data.images.collection import pixel_rows

            if reset:
                name = type(self).__name__
                warnings.warn(
                    f"{name} learns from rows of pixels, which say little about photographs: "
                    f"ImageClassifier({name}(...)) puts a pretrained network before it "
                    "(pip install 'labelweave[vision]')",
                    LabelweaveWarning,
                    stacklevel=2,
                )
            X = pixel_rows(X, None if reset else self.n_features_in_)
        if reset and "table_encoder_" in vars(self):
            del self.table_encoder_
        X = numbers_or_table(X, missing_values=capabilities(self).missing_values)
        if "table_encoder_" in vars(self):
            return self._encoded(X)
        if isinstance(X, Table):
            return self._checked_table(X, reset=reset)
        if is_texts(X):
            raise InputError(
                f"X holds texts, but {type(self).__name__} takes features: wrap it, "
                f"TextClassifier({type(self).__name__}(...)), or put a vectorizer before it"
            )
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=[np.float64, np.float32],  # integers and lists become the first, exactly
            ensure_all_finite=False,  # checked below, with row, column and size
        )
        takes_nan = capabilities(self).missing_values and not sp.issparse(X)
        wrong = first_out_of_range(X, allow_nan=takes_nan, largest=LARGEST)
        if wrong is None:
            return X
        value, row, column = wrong
        names = getattr(self, "feature_names_in_", None)
        name = "" if names is None else f" ({names[column]!r})"
        where = f"at row {row}, column {column}{name}"
        if np.isnan(value):
            raise InputError(
                f"X contains NaN {where}: fill it in (sklearn.impute) or drop it first"
            )
        if np.isinf(value):
            raise InputError(f"X contains infinity {where}: bound it first")
        raise InputError(
            f"X contains {value:.4g} {where}, but numbers beyond 2**64 (about 1.8e19) are too "
            "large to compute with: scale or clip that column first"
        )

    def _checked_table(self, table: Table, *, reset: bool) -> Table:
        """Set the names of the columns; the encoder is fitted when the training rows are known."""
        if not reset:
            raise InputError(
                f"the column {table.first_mixed_column()!r} has blanks or values that are not "
                "numbers, but the model was fitted to numbers: pass such columns to `fit` as well"
            )
        names = [str(name) for name in table.frame.columns]
        self.n_features_in_, self.feature_names_in_ = len(names), np.asarray(names, dtype=object)
        return table

    def _fit_encoder(self, table: Table, Y: LabelMatrix | None) -> Any:
        """Fit the encoder to the rows of a table, and return their features."""
        able = capabilities(self)
        encoder = table.unfitted_encoder()
        encoder.set_params(output="codes" if able.categories else "one-hot")
        if able.passes_tables:
            self.table_encoder_ = encoder.fit(table, Y)
            return self.table_encoder_.passed_on(table)
        features = encoder.fit_transform(table, Y)
        self.table_encoder_ = encoder
        return features

    def _encoded(self, X: Any) -> Any:
        """Features of further rows of a table."""
        with self._about_folder():
            if capabilities(self).passes_tables:
                return self.table_encoder_.passed_on(X)
            return self.table_encoder_.transform(X)

    @property
    def _n_columns(self) -> int:
        """Number of columns of the features that `_fit` receives."""
        encoder = vars(self).get("table_encoder_")
        return self.n_features_in_ if encoder is None else len(encoder.feature_columns_)

    def _known_labels(self, Y: Any) -> LabelMatrix:
        """Labels of further rows, with columns in this model's order of labels."""
        names = tuple(self.label_names_)
        if self._single_label and (flat := as_single_target(Y)) is not None:
            return as_labels(flat[:, None] == self.classes_, names=names)
        if isinstance(Y, LabelMatrix) or hasattr(Y, "columns"):
            labels = as_labels(Y)
            return labels if labels.names == names else labels.select(names)
        is_matrix = sp.issparse(Y) or hasattr(Y, "ndim")
        if is_matrix and Y.shape[1:] != (self.n_labels_,):
            raise InputError(f"Y has shape {Y.shape}, but the model knows {self.n_labels_} labels")
        return as_labels(Y, names=names)

    def _checked_validation(self, validation: Any) -> Pair | None:
        if validation is None:
            return None
        if hasattr(validation, "X") and hasattr(validation, "Y"):
            validation = (validation.X, validation.Y)
        if not isinstance(validation, Sequence) or len(validation) != 2:
            raise InputError("validation must be a Dataset or a pair (X, Y)")
        X = self._checked_features(validation[0], reset=False)
        Y = self._known_labels(validation[1])
        check_consistent_length(X, Y)
        return X, Y

    def _scores(self, X: Any) -> Any:
        """The probabilities of all labels or, with many labels, of the best of each row."""
        if predicts_top_labels(self):
            return self._top_probabilities(X, TOP_LABELS)
        return self._probabilities(X)

    def _top_probabilities(self, X: Any, k: int) -> sp.csr_array:
        if k < 1:
            raise InputError(f"k must be at least 1, not {k}")
        k = min(k, self.n_labels_)
        if not capabilities(self).top_labels:
            return top_of_chunks(self._probabilities, X, self.n_labels_, k)
        with self._about_folder():
            top = self._predict_top_k(X, k)
            top.data = inside(top.data[:, None]).ravel()
            return top

    def _predict_top_k(self, X: Any, k: int) -> sp.csr_array:
        """The k best labels of checked features; with the capability `top_labels`."""
        raise NotImplementedError

    def _probabilities(self, X: Any) -> np.ndarray:
        if "_loaded_from" not in vars(self):
            return self._as_probabilities(self._predict_proba(X))
        with self._about_folder():
            raw = np.asarray(self._predict_proba(X))
            shape = (X.shape[0] if hasattr(X, "shape") else len(X), self.n_labels_)
            if raw.shape != shape or not np.isfinite(raw).all():
                raise ValueError("not a probability for each row and label")
            return self._as_probabilities(raw)

    @contextmanager
    def _about_folder(self) -> Iterator[None]:
        """Report an error of a loaded model as one of its folder; what it was given is checked."""
        try:
            yield
        except (LabelweaveError, ImportError, MemoryError):
            raise
        except Exception as error:
            folder = vars(self).get("_loaded_from")  # set by `load`
            if folder is None:
                raise
            raise ModelFolderError(
                f"{folder} contains a model that cannot predict these rows ({in_one_line(error)}): "
                "pass rows of the form of the training rows, dense or sparse; if they are, the "
                "folder is damaged or was changed"
            ) from error

    def _as_probabilities(self, raw: np.ndarray) -> np.ndarray:
        probabilities = inside(raw)
        if self._single_label:
            probabilities = probabilities / probabilities.sum(axis=1, keepdims=True)
        return probabilities

    def _label_sets(self, probabilities: Any) -> Any:
        with self._about_folder():
            return self.threshold_.apply(probabilities).astype(self._target_dtype)

    def _named(self, label_sets: Any) -> list[list[str]]:
        return as_labels(label_sets, names=self.label_names_.tolist()).to_lists()

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_out_of_fold"}

    def __sklearn_tags__(self) -> Any:
        tags = with_capabilities(super().__sklearn_tags__())
        tags.input_tags.sparse = True
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = True
        return tags


def inside(probabilities: np.ndarray) -> np.ndarray:
    """Probabilities strictly between 0 and 1, which scikit-learn asks for; NaN is refused."""
    if (wrong := first_out_of_range(probabilities)) is not None:
        raise InputError(
            f"the model has no finite probability for row {wrong[1]} of X, whose numbers are too "
            "large for it or too far from the training rows: scale or clip the columns, and fit "
            "the model to these"
        )
    return np.clip(probabilities, _TINY, _ALMOST_ONE)

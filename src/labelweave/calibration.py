"""Calibrated probabilities for every label.

:class:`LabelCalibrator` maps the probabilities of a model to calibrated ones; it is fitted to
rows that the model was not trained on. :class:`CalibratedMultiLabel` does both for any
classifier, with out-of-fold probabilities.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, clone
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.input_checks import is_texts
from labelweave.known_labels import KnownLabelsMixin
from labelweave.label_pipeline import LabelPipeline, as_label_pipeline
from labelweave.labels import LabelMatrix, as_labels, is_frame
from labelweave.metrics._inputs import check_score, chunks
from labelweave.probabilities import log_odds
from labelweave.tables.table import Table, column_names, rows_for

__all__ = ["CalibratedMultiLabel", "LabelCalibrator"]

METHODS = ("sigmoid", "isotonic", "temperature")
_MIN_POSITIVES = {"sigmoid": 10, "isotonic": 50, "temperature": 0}
_EPS = 1e-12  # probabilities of 0 and 1 have no finite log odds


class LabelCalibrator(BaseEstimator):
    """Map probabilities to calibrated probabilities, by one function per label.

    Parameters
    ----------
    method : {"sigmoid", "isotonic", "temperature"}, default="sigmoid"
        ``"sigmoid"``: sigmoid(a logit(p) + b), a and b of each label by maximum likelihood with
        Platt's smoothed targets [1]_. ``"isotonic"``: the best non-decreasing function [2]_,
        for labels with many positives. ``"temperature"``: sigmoid(logit(p) / T) with one T for
        all labels [3]_, which needs few positives and keeps the order of all entries.
    min_positives : int, optional
        A label with fewer known positives, or fewer known negatives, gets the sigmoid that is
        fitted to all labels together. Default: 10 for the sigmoid, 50 for isotonic regression.

    Attributes
    ----------
    slope_, offset_ : ndarray of shape (n_labels,)
        a and b of the sigmoid of each label.
    knots_ : ndarray of shape (2, n_knots)
        Inputs and outputs of the isotonic functions, those of label l in the columns from
        ``first_knot_[l]`` up to ``first_knot_[l + 1]``. A label without knots has its sigmoid.
    first_knot_ : ndarray of shape (n_labels + 1,)

    Notes
    -----
    Unknown entries are ignored. No function reverses the order of two probabilities of a label: if
    the likelihood is largest at a < 0, the label gets a = 0, that is, its share of positives.

    References
    ----------
    .. [1] J. Platt. Probabilistic outputs for support vector machines and comparisons to
       regularized likelihood methods. Advances in Large Margin Classifiers, 1999.
    .. [2] B. Zadrozny and C. Elkan. Transforming classifier scores into accurate multiclass
       probability estimates. KDD 2002.
    .. [3] C. Guo, G. Pleiss, Y. Sun and K. Q. Weinberger. On calibration of modern neural
       networks. ICML 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.calibration import LabelCalibrator
    >>> p = np.tile([0.9, 0.1], 50)[:, None]          # too sure: right in 7 of 10 cases
    >>> Y = np.where(np.arange(100)[:, None] % 20 < 14, p > 0.5, p < 0.5)
    >>> LabelCalibrator().fit(Y, p).transform(p[:2]).round(1)
    array([[0.7],
           [0.3]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions(set(METHODS))],
        "min_positives": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, method: str = "sigmoid", min_positives: int | None = None) -> None:
        self.method = method
        self.min_positives = min_positives

    def fit(self, Y: Any, P: Any) -> Self:
        """Fit to labels `Y` and the probabilities `P` that a model predicted for their rows."""
        self._validate_params()
        labels, scores = check_score(as_labels(Y), P)
        p = np.asarray(scores, dtype=np.float64)
        _check_range(p)
        few = _MIN_POSITIVES[self.method] if self.min_positives is None else self.min_positives
        positives, known = labels.counts()
        enough = (np.minimum(positives, known - positives) >= few) & (self.method != "temperature")
        slope, offset = _common_sigmoid(labels, p, with_offset=self.method != "temperature")
        self.slope_ = np.full(labels.n_labels, slope)
        self.offset_ = np.full(labels.n_labels, offset)
        chosen = np.flatnonzero(enough)
        knots: list[np.ndarray] = [np.empty((2, 0))] * labels.n_labels
        for part in chunks(len(chosen), labels.n_rows):
            columns = chosen[part]
            truth = labels[:, columns].to_numpy(np.float64)
            if self.method == "sigmoid":
                fitted = _fit_sigmoids(log_odds(p[:, columns], _EPS), truth)
                self.slope_[columns], self.offset_[columns] = fitted
            else:
                for k, j in enumerate(columns):
                    knots[j] = _isotonic_knots(truth[:, k], p[:, j])
        self.knots_ = np.concatenate(knots, axis=1)
        self.first_knot_ = np.cumsum([0, *(part.shape[1] for part in knots)])
        return self

    def transform(self, P: Any) -> np.ndarray:
        """Return calibrated probabilities, of the same shape."""
        check_is_fitted(self)
        p = np.asarray(P, dtype=np.float64)
        if p.ndim != 2 or p.shape[1] != len(self.slope_):
            raise InputError(
                f"the probabilities have shape {p.shape}, but the calibrator was fitted to "
                f"{len(self.slope_)} labels"
            )
        _check_range(p)
        result = expit(self.slope_ * log_odds(p, _EPS) + self.offset_)
        for j in np.flatnonzero(np.diff(self.first_knot_)):
            inputs, outputs = self.knots_[:, self.first_knot_[j] : self.first_knot_[j + 1]]
            result[:, j] = np.interp(p[:, j], inputs, outputs)
        return result


class CalibratedMultiLabel(KnownLabelsMixin):
    """A classifier with calibrated probabilities.

    Parameters
    ----------
    estimator : estimator of this library, optional
        The classifier; :class:`~labelweave.dependent.br.BinaryRelevance` by default.
    method : {"sigmoid", "isotonic", "temperature"}, default="sigmoid"
        As in :class:`LabelCalibrator`.
    min_positives : int, optional
        As in :class:`LabelCalibrator`.
    cv : int or "prefit", default=5
        Number of folds. The calibrator is fitted to out-of-fold probabilities, then the classifier
        to all rows. ``"prefit"``: the classifier is fitted already, and only the calibrator is
        fitted to the rows passed to `fit`, which the classifier must not have been trained on.
    n_jobs : int, optional
        Number of folds that joblib runs in parallel.
    threshold, validation_fraction, random_state
        As for every estimator: see :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    estimator_ : the fitted classifier
    calibrator_ : LabelCalibrator

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.calibration import CalibratedMultiLabel
    >>> from labelweave.dependent.mlknn import MLkNN
    >>> X = np.linspace(0, 1, 60).reshape(-1, 1)
    >>> Y = np.hstack([X < 0.5, X >= 0.5]).astype(int)
    >>> CalibratedMultiLabel(MLkNN()).fit(X, Y).predict([[0.1], [0.9]])
    array([[1, 0],
           [0, 1]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        **LabelCalibrator._parameter_constraints,
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "cv": [Interval(Integral, 2, None, closed="left"), StrOptions({"prefit"})],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        estimator: Any = None,
        method: str = "sigmoid",
        min_positives: int | None = None,
        cv: int | str = 5,
        n_jobs: int | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.method = method
        self.min_positives = min_positives
        self.cv = cv
        self.n_jobs = n_jobs
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        able = capabilities(as_label_pipeline(self.estimator))
        has_texts = able.texts and (not able.vectors or is_texts(X))
        if not (able.images or has_texts or self._has_pipeline):
            return super()._checked_features(X, reset=reset)
        rows = _unchecked_rows(X, images=able.images)  # the estimator checks them
        if has_texts and not is_texts(rows):
            raise InputError("X must be a list of texts, which the estimator is for")
        if reset:
            self.__dict__.pop("feature_names_in_", None)
            if rows.ndim > 1:
                self.n_features_in_ = rows.shape[1]
            if isinstance(rows, Table):
                self.feature_names_in_ = np.asarray(column_names(rows.frame), dtype=object)
        return rows

    @property
    def _has_pipeline(self) -> bool:
        """Whether the estimator is a pipeline, which gets the columns of a table as they are."""
        return isinstance(self.estimator, Pipeline)

    def input_columns(self) -> list[Any] | None:
        """Return the columns of the mixed table, as the estimator expects them."""
        check_is_fitted(self)
        is_pipeline = isinstance(self.estimator_, LabelPipeline)
        return self.estimator_.input_columns() if is_pipeline else super().input_columns()

    def _fit_encoder(self, table: Table, Y: LabelMatrix | None) -> Any:
        return table if self._has_pipeline else super()._fit_encoder(table, Y)

    def _encoded(self, X: Any) -> Any:
        return X if self._has_pipeline else super()._encoded(X)

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        self.calibrator_ = LabelCalibrator(self.method, self.min_positives)
        if self.cv == "prefit":
            self.estimator_ = self._prefit_estimator()
            self.calibrator_.fit(Y, self._uncalibrated(X))
            return
        from labelweave.methods import make
        from labelweave.model_selection import cross_val_predict_proba

        if len(Y) < 2:
            raise InputError("calibration needs at least two rows for its folds, but n_samples=1")
        template = make("br") if self.estimator is None else clone(self.estimator)
        template = as_label_pipeline(template)
        X = rows_for(template, X)
        seed = None
        if self.random_state is not None:
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            template.set_params(**dict.fromkeys(_seeds(template), seed))
        out_of_fold = cross_val_predict_proba(
            template, X, Y, cv=min(int(self.cv), len(Y)), n_jobs=self.n_jobs, random_state=seed
        )
        self.calibrator_.fit(Y, out_of_fold)
        self.estimator_ = template.fit(X, Y)

    def _prefit_estimator(self) -> Any:
        if self.estimator is None:
            raise InputError("cv='prefit' needs a fitted estimator")
        check_is_fitted(self.estimator)
        estimator = as_label_pipeline(self.estimator)
        names = tuple(getattr(estimator, "label_names_", self.label_names_))
        if names != tuple(self.label_names_):
            raise InputError(
                f"the fitted estimator has {len(names)} labels, and they are not those of Y in "
                "the same order"
            )
        return estimator

    def _uncalibrated(self, X: Any, **more: Any) -> np.ndarray:
        return self.estimator_.predict_proba(rows_for(self.estimator_, X), **more)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        able = capabilities(as_label_pipeline(self.estimator))
        tags.capabilities.known_labels = able.known_labels
        tags.capabilities.vectors = able.vectors
        tags.capabilities.texts = able.texts
        tags.capabilities.images = able.images
        tags.capabilities.passes_tables = True
        return tags

    def _predict_proba(self, X: Any, known: np.ndarray | None = None) -> np.ndarray:
        more = {} if known is None else {"known": known}
        return self.calibrator_.transform(self._uncalibrated(X, **more))

    def _state(self) -> dict[str, Any]:
        fitted = {name: v for name, v in vars(self.calibrator_).items() if name.endswith("_")}
        return {"estimator": self.estimator_, "calibrator": fitted}

    def _set_state(self, state: dict[str, Any]) -> None:
        self.estimator_ = state["estimator"]
        self.calibrator_ = LabelCalibrator(self.method, self.min_positives)
        for name, value in state["calibrator"].items():
            setattr(self.calibrator_, name, value)


def _unchecked_rows(X: Any, *, images: bool) -> Any:
    """Return rows in a form of which some can be taken by their numbers."""
    if images:
        from labelweave.data.images.collection import checked_images

        return checked_images(X)
    if isinstance(X, Table):
        return X
    if is_frame(X):
        return Table(X)
    if sp.issparse(X):
        return sp.csr_array(X)
    return np.array(X, dtype=object) if is_texts(X) else np.asarray(X)


def _seeds(estimator: Any) -> list[str]:
    """Names of the parameters of an estimator, or of the steps of a pipeline, that are seeds."""
    prefixes = [""]
    if isinstance(estimator, Pipeline):
        prefixes = [f"{name}__" for name, _ in estimator.steps]
    parameters = estimator.get_params()
    return [f"{prefix}random_state" for prefix in prefixes if f"{prefix}random_state" in parameters]


def _check_range(p: np.ndarray) -> None:
    if p.size and not (p.min() >= 0 and p.max() <= 1):
        raise InputError("probabilities must lie between 0 and 1")


def _common_sigmoid(Y: LabelMatrix, p: np.ndarray, *, with_offset: bool) -> tuple[float, float]:
    """Slope and offset of one sigmoid for the entries of all labels."""
    truth = Y.to_numpy(np.float64).ravel()
    is_known = ~np.isnan(truth)
    z = log_odds(p, _EPS).ravel()[is_known]
    slope, offset = _fit_sigmoids(z[:, None], truth[is_known, None], with_offset=with_offset)
    return float(slope[0]), float(offset[0])


def _fit_sigmoids(
    z: np.ndarray, truth: np.ndarray, *, with_offset: bool = True
) -> tuple[np.ndarray, np.ndarray]:
    """Slopes a and offsets b of sigmoid(a z + b) for all columns at once, NaN unknown.

    Newton's method with the step halved where the loss would grow (it is convex).
    """
    known = ~np.isnan(truth)
    truth = np.where(known, truth, 0.0)
    n_positive = truth.sum(axis=0)
    n_negative = known.sum(axis=0) - n_positive
    # Platt's targets: as if there were one more positive and one more negative.
    target = np.where(truth == 1, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
    rate = (n_positive + 1) / (n_positive + n_negative + 2)

    def loss(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        x = a * z + b
        return (known * (np.logaddexp(0, x) - target * x)).sum(axis=0)

    a, b = np.ones(z.shape[1]), np.zeros(z.shape[1])
    current = loss(a, b)
    for _ in range(100):
        p = expit(a * z + b)
        error, weight = known * (p - target), known * p * (1 - p)
        g_a, g_b = (error * z).sum(axis=0), error.sum(axis=0)
        h_aa, h_ab, h_bb = ((weight * z**k).sum(axis=0) + (k != 1) * 1e-10 for k in (2, 1, 0))
        if with_offset:
            determinant = h_aa * h_bb - h_ab**2
            step_a = (h_bb * g_a - h_ab * g_b) / determinant
            step_b = (h_aa * g_b - h_ab * g_a) / determinant
        else:
            step_a, step_b = g_a / h_aa, np.zeros_like(g_a)
        size = np.ones_like(a)
        for _ in range(30):
            new = loss(a - size * step_a, b - size * step_b)
            worse = ~(new <= current)
            if not worse.any():
                break
            size[worse] /= 2
        size[worse] = 0
        a, b = a - size * step_a, b - size * step_b
        gain, current = current - np.where(worse, current, new), np.where(worse, current, new)
        if (gain <= 1e-10 * np.abs(current)).all():
            break
    reverse = a <= 0
    return np.where(reverse, 0.0, a), np.where(reverse, logit(rate) if with_offset else 0.0, b)


def _isotonic_knots(truth: np.ndarray, p: np.ndarray) -> np.ndarray:
    known = ~np.isnan(truth)
    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(p[known], truth[known])
    return np.vstack([model.X_thresholds_, model.y_thresholds_])

"""A teacher: any trained model, and the names of the labels that it predicts."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from scipy.special import expit, logit
from sklearn.utils import _safe_indexing

from labelweave.exceptions import InputError
from labelweave.methods import method_of
from labelweave.probabilities import log_odds
from labelweave.rows import count_rows
from labelweave.scattered._amalgamation.teacher_outputs import as_probabilities

__all__ = ["LOGIT_EPS", "Teacher", "as_teachers"]

# Probabilities of 0 and 1, which trees and hard votes return, have no finite logits; beyond
# this bound a single teacher would outweigh all others in a mean.
LOGIT_EPS = 1e-4  # bounds the logits of teachers at 9.2 on either side

_HTTP = ("http://", "https://")
_PREDICTION_METHODS = ("predict_proba", "decision_function", "predict")  # the best first


@runtime_checkable
class ClassifierChainModel(Protocol):
    """A classifier chain that can be started from given logits, such as OFCC."""

    def chain_logits(self, X: Any, *, start: np.ndarray | None = None) -> np.ndarray:
        """Final logits of the chain, which starts from the logits `start`."""


class Teacher:
    """A trained model and the labels that it predicts.

    Parameters
    ----------
    model : estimator, path, URL or callable
        * an estimator of this library, or the folder that it was saved to;
        * a classifier or pipeline of scikit-learn, whatever shape its `predict_proba` has. If it
          has only a `decision_function`, the sigmoid of it is used (:meth:`calibrated` turns it
          into probabilities); if it has only `predict`, its predictions count as votes;
        * a function of rows that returns probabilities: an array with one column per label, or a
          DataFrame or a mapping with label names;
        * the ``http://`` address of a model that answers Open Inference requests, see
          :class:`labelweave.scattered._amalgamation.remote_model.RemoteModel`;
        * an ``.onnx`` file from features to one column per label (the extra ``export``), or a
          model of scikit-learn in a ``.skops`` file, or in a pickle (see `trust`).

        :meth:`from_predictions` takes predictions that were made before.
    labels : sequence of str, optional
        Name of each column, in the model's order. Models of this library, and remote models that
        list their labels, need none.
    name : str, optional
        Name of the teacher in reports.
    threshold : float or sequence of float, optional
        The probability, of all labels or of each, from which the teacher predicts a label. By
        default the threshold of its model; 0.5 where the model has none, or one that depends on
        the row, such as the best three labels.
    abstain : float from 0 to 0.5, default=0.0
        The teacher abstains where its probability is within this distance of one half, measured
        relative to its threshold.
    columns : sequence of int, optional
        The columns of the rows that the model was trained on, in its order, where it does not
        use all of them.
    prevalence : sequence of float, optional
        Share of positives of each label in the rows that the model was trained on, NaN where it
        is unknown; by default the model's `label_prevalence_`, where it has one.
    trust : bool, default=False
        Whether a ``.pkl``, ``.pickle`` or ``.joblib`` file may be opened. Such a file can run any
        program when it is opened: only trust one whose author you trust.

    Examples
    --------
    >>> import numpy as np
    >>> def heat(X):
    ...     return np.column_stack([X[:, 0] > 20, X[:, 0] < 5]).astype(float)
    >>> teacher = Teacher(heat, ["hot", "cold"])
    >>> teacher.probabilities(np.array([[30.0], [12.0]]))
    array([[1., 0.],
           [0., 0.]])
    """

    def __init__(
        self,
        model: Any,
        labels: Sequence[str] | None = None,
        *,
        name: str | None = None,
        threshold: float | Sequence[float] | None = None,
        abstain: float = 0.0,
        columns: Sequence[int] | None = None,
        prevalence: Sequence[float] | None = None,
        trust: bool = False,
    ) -> None:
        if isinstance(labels, str):
            raise InputError(f"labels must be a sequence of names, not the text {labels!r}")
        self.source = model if isinstance(model, str | PathLike) else None
        self.model = _load_model(model, trust=trust)
        self.name = name or _name_of(model)
        self.labels = self._checked_labels(labels)
        if not 0 <= abstain < 0.5:
            raise InputError(f"abstain must be from 0 to below 0.5, not {abstain!r}")
        self.abstain = float(abstain)
        self.thresholds = self._checked_thresholds(threshold)
        self.columns = None if columns is None else list(columns)
        self.prevalence = self._checked_prevalence(prevalence)
        self.calibrator: Any = None

    def __deepcopy__(self, memo: Any) -> Teacher:
        return self  # it never changes: scikit-learn's clone need not copy a network

    def __repr__(self) -> str:
        return f"<Teacher {self.name}: {len(self.labels)} labels, {self.kind}>"

    @classmethod
    def from_predictions(
        cls, X: Any, predictions: Any, *, name: str = "predictions", **options: Any
    ) -> Self:
        """Return a teacher that consists of predictions that were made before.

        Parameters
        ----------
        X : rows
        predictions : DataFrame
            Probabilities of these rows, one column per label.
        name : str, default="predictions"
        **options
            Further parameters of a teacher: `threshold`, `abstain`, `prevalence`.

        Notes
        -----
        It can predict these rows and no others: no synthetic rows, and nothing after `fit`. A
        student of it works on all rows, a union of it does not.
        """
        from labelweave.scattered._amalgamation.teacher_files import StoredPredictions

        labels = [str(label) for label in predictions.columns]
        model = StoredPredictions(X, predictions.to_numpy(), labels)
        return cls(model, name=name, **options)

    @property
    def predicts_new_rows(self) -> bool:
        """Whether it is a model, and not predictions that were made before."""
        from labelweave.scattered._amalgamation.teacher_files import StoredPredictions

        return not isinstance(self.model, StoredPredictions)

    @property
    def can_revise(self) -> bool:
        """Whether the model is a chain, which can revise its predictions (ANT)."""
        return isinstance(self.model, ClassifierChainModel)

    @property
    def kind(self) -> str:
        """The kind of model: "chain", "network" or "black box"."""
        if self.can_revise:
            return "chain"
        return "black box" if getattr(self.model, "network_", None) is None else "network"

    @property
    def margin(self) -> float:
        """The teacher abstains where the absolute value of its logit is below this."""
        return float(logit(0.5 + self.abstain))

    # -- predictions -------------------------------------------------------------------

    def probabilities(self, X: Any) -> np.ndarray:
        """P(label | x) of each row, checked, in the order of `labels`."""
        output = self._model_output(X)
        p = as_probabilities(output, self.labels, count_rows(X), self.name, self.model)
        return self._calibrated(p)

    def _calibrated(self, p: np.ndarray) -> np.ndarray:
        return p if self.calibrator is None else self.calibrator.transform(p)

    @property
    def offsets(self) -> np.ndarray:
        """Logit of the threshold of each label, on the scale of `probabilities`."""
        return log_odds(self._calibrated(self.thresholds[None])[0], LOGIT_EPS, np.float32)

    def logits(self, X: Any) -> np.ndarray:
        """Logit of each label, bounded, less that of its threshold: positive if predicted."""
        return log_odds(self.probabilities(X), LOGIT_EPS, np.float32) - self.offsets

    def revise(self, X: Any, start: np.ndarray, replaced: np.ndarray) -> np.ndarray:
        """Logits of a chain that runs again (Eq. 3 of ANT), as `logits` gives them; chains only.

        Parameters
        ----------
        X : rows
        start : array of shape (rows, labels)
            What `logits` gives, with the logits of other teachers at the `replaced` entries.
        replaced : boolean array of the same shape
        """
        if self.calibrator is not None or self.offsets.any():
            # The chain starts from its own logits, which are neither calibrated nor shifted.
            own = as_probabilities(
                self._model_output(X), self.labels, count_rows(X), self.name, self.model
            )
            own_scale = start + log_odds(self.thresholds, LOGIT_EPS, np.float32)
            start = np.where(replaced, own_scale, log_odds(own, LOGIT_EPS, np.float32))
        logits = self.model.chain_logits(self.features(X), start=start)
        p = as_probabilities(expit(logits.astype(np.float64)), self.labels, len(logits), self.name)
        return log_odds(self._calibrated(p), LOGIT_EPS, np.float32) - self.offsets

    def calibrated(self, X: Any, Y: Any, method: str = "temperature") -> Self:
        """Return the same teacher with probabilities calibrated on a few labelled rows.

        Parameters
        ----------
        X : rows that the teacher was not trained on
        Y : labels of these rows, in the order of `labels`; NaN where they are unknown
        method : {"temperature", "sigmoid", "isotonic"}, default="temperature"
            As in :class:`labelweave.calibration.LabelCalibrator`.
        """
        from labelweave.calibration import LabelCalibrator

        teacher = object.__new__(type(self))
        vars(teacher).update(vars(self))
        teacher.calibrator = None
        teacher.calibrator = LabelCalibrator(method).fit(Y, teacher.probabilities(X))
        return teacher

    def features(self, X: Any) -> Any:
        """The columns of X that the model uses."""
        if self.columns is None:
            return X
        return X.iloc[:, self.columns] if hasattr(X, "iloc") else X[:, self.columns]

    def _model_output(self, X: Any) -> Any:
        try:
            return _prediction_function(self.model)(self.features(X))
        except InputError as error:
            raise InputError(f"teacher {self.name!r}: {error}") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(
                f"teacher {self.name!r} cannot score these rows: {' '.join(str(error).split())}"
            ) from error

    # -- checks ------------------------------------------------------------------------

    def _checked_labels(self, labels: Sequence[str] | None) -> tuple[str, ...]:
        model_labels = _labels_of(self.model)
        if labels is None:
            if model_labels is None:
                raise InputError(
                    f"the model of teacher {self.name!r} does not list its labels: "
                    "pass Teacher(model, labels)"
                )
            labels = model_labels
        checked = tuple(str(label) for label in labels)
        if not checked:
            raise InputError(f"teacher {self.name!r} has no labels")
        if len(set(checked)) < len(checked):
            twice = next(label for label in checked if checked.count(label) > 1)
            raise InputError(
                f"teacher {self.name!r} has the label {twice!r} twice: names must differ"
            )
        if model_labels is not None and len(model_labels) != len(checked):
            raise InputError(
                f"teacher {self.name!r} was given {len(checked)} labels, but its model has "
                f"{len(model_labels)}"
            )
        return checked

    def _checked_thresholds(self, threshold: Any) -> np.ndarray:
        if threshold is None:
            rule = getattr(self.model, "threshold_", None)  # of models of this library, or served
            applied = getattr(rule, "applied_threshold", None)
            threshold = 0.5 if applied is None else applied
        values = np.array(threshold, dtype=np.float64)
        if (
            values.shape not in ((), (len(self.labels),))
            or not ((values >= 0) & (values <= 1)).all()
        ):
            raise InputError(
                f"threshold of teacher {self.name!r} must be one probability, or "
                f"{len(self.labels)}, one per label"
            )
        return np.broadcast_to(values, (len(self.labels),))

    def _checked_prevalence(self, prevalence: Sequence[float] | None) -> np.ndarray | None:
        if prevalence is None:
            prevalence = getattr(self.model, "label_prevalence_", None)
            if prevalence is None or len(prevalence) != len(self.labels):
                return None
        shares = np.asarray(prevalence, dtype=np.float64)
        if shares.shape != (len(self.labels),) or (shares < 0).any() or (shares > 1).any():
            raise InputError(
                f"prevalence of teacher {self.name!r} must be {len(self.labels)} shares from 0 "
                "to 1, one per label"
            )
        return shares


def as_teachers(teachers: Any) -> list[Teacher]:
    """Check that there are at least two different teachers; models that list their labels may
    stand for themselves."""
    if isinstance(teachers, Teacher | str | PathLike | Mapping) or not hasattr(
        teachers, "__iter__"
    ):
        raise InputError("teachers must be a sequence of at least two teachers")
    checked = [one if isinstance(one, Teacher) else Teacher(one) for one in teachers]
    if len(checked) < 2:
        raise InputError(
            f"amalgamation needs at least two teachers, not {len(checked)}: "
            "teachers=[Teacher(model, labels), ...]"
        )
    for k, teacher in enumerate(checked):
        for other in checked[:k]:
            is_same = other.model is teacher.model or _is_same_source(other.source, teacher.source)
            if is_same and other.labels == teacher.labels:
                raise InputError(
                    f"teachers {other.name!r} and {teacher.name!r} are the same model: "
                    "pass each model once"
                )
    return checked


def _is_same_source(one: Any, other: Any) -> bool:
    """Whether two teachers come from one address, one path, or copies of one model folder."""
    if one is None or other is None:
        return False
    addresses = [str(source).rstrip("/") for source in (one, other)]
    if any(address.startswith(_HTTP) for address in addresses):
        return addresses[0] == addresses[1]
    paths = [Path(os.path.realpath(address)) for address in addresses]
    if paths[0] == paths[1]:
        return True
    if not all(path.is_dir() for path in paths):
        return False
    from labelweave.persistence.manifest import read_config

    first, second = (read_config(path)["sha256"] for path in paths)
    return first == second


def unique_names(teachers: Sequence[Teacher]) -> list[str]:
    """The teachers' names, numbered where two are the same.

    >>> one, two = (Teacher(abs, [label], name="svm") for label in "ab")
    >>> unique_names([one, two])
    ['svm', 'svm-2']
    """
    names: list[str] = []
    for teacher in teachers:
        name, number = teacher.name, 1
        while name in names:
            number += 1
            name = f"{teacher.name}-{number}"
        names.append(name)
    return names


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, a sparse matrix, a DataFrame, images or a sequence of texts."""
    return X[rows] if hasattr(X, "pixels") else _safe_indexing(X, rows)


def _load_model(model: Any, *, trust: bool) -> Any:
    if isinstance(model, str) and model.startswith(_HTTP):
        from labelweave.scattered._amalgamation.remote_model import RemoteModel

        return RemoteModel(model)
    if isinstance(model, str | PathLike):
        from labelweave.persistence import load
        from labelweave.scattered._amalgamation.teacher_files import open_model_file

        opened = open_model_file(Path(model), trust=trust)
        return load(model) if opened is None else opened
    if isinstance(model, type) or not (
        callable(model) or any(hasattr(model, name) for name in _PREDICTION_METHODS)
    ):
        raise InputError(
            f"{model!r} cannot be a teacher: pass a fitted classifier, a model folder, a URL or a "
            "function"
        )
    return model


def _prediction_function(model: Any) -> Callable[[Any], Any]:
    """The method of a model that returns probabilities, decision values or votes."""
    for name in _PREDICTION_METHODS:
        if hasattr(model, name):
            if name == "decision_function":
                return lambda X: expit(np.asarray(model.decision_function(X), dtype=np.float64))
            return getattr(model, name)
    return model


def _name_of(model: Any) -> str:
    if isinstance(model, str | PathLike):
        return Path(str(model)).name or str(model)
    method = method_of(model)
    if method is not None:
        return method.id
    return getattr(model, "__name__", type(model).__name__)


def _labels_of(model: Any) -> list[str] | None:
    """The labels that a model itself names, in the order of its columns."""
    names = getattr(model, "label_names_", None)
    if names is not None:
        return [str(name) for name in names]
    classes = getattr(model, "classes_", None)
    if isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "OUS":
        return [str(name) for name in classes]
    return None

"""A teacher: any trained model, and the names of the labels that it knows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy.special import expit, logit
from sklearn.utils import _safe_indexing

from labelweave.exceptions import InputError
from labelweave.methods import method_of
from labelweave.probabilities import log_odds
from labelweave.rows import count_rows
from labelweave.scattered.answers import as_probabilities

__all__ = ["LOGIT_EPS", "Teacher", "as_teachers"]

# Probabilities of 0 and 1, which trees and hard votes give, have no finite log odds; beyond
# this a single teacher would outweigh all others in a mean.
LOGIT_EPS = 1e-4  # bounds the logits of teachers at 9.2 on either side


class Teacher:
    """A trained model and the labels it knows.

    Parameters
    ----------
    model : estimator, path, URL or callable
        * an estimator of this library, or the folder that one was saved to;
        * a classifier or pipeline of scikit-learn, whatever shape its `predict_proba` has; one
          with a `decision_function` only gives the sigmoid of it (:meth:`calibrated` makes
          probabilities of it), one with `predict` only gives its votes;
        * a function of rows that returns probabilities: an array of one column a label, or a
          DataFrame or a mapping with label names;
        * the ``http://`` address of a model that answers Open Inference requests, see
          :class:`labelweave.scattered.remote.RemoteModel`.
    labels : sequence of str, optional
        Name of each column, in the model's order. Models of this library and remote ones that
        tell their labels need none.
    name : str, optional
        How to call the teacher in reports.
    abstain : float from 0 to 0.5, default=0.0
        The teacher has no say where its probability is within this distance of one half.
    columns : sequence of int, optional
        The columns of the rows that the model was trained on, in its order, where it does not
        take all of them.
    rates : sequence of float, optional
        How often each label is positive where the model learnt, NaN where that is not known;
        by default what the model tells (`label_prevalence_`, as those of this library do).

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
        abstain: float = 0.0,
        columns: Sequence[int] | None = None,
        rates: Sequence[float] | None = None,
    ) -> None:
        if isinstance(labels, str):
            raise InputError(f"labels must be a sequence of names, not the text {labels!r}")
        self.source = model if isinstance(model, str | PathLike) else None
        self.model = _loaded(model)
        self.name = name or _name_of(model)
        self.labels = self._checked_labels(labels)
        if not 0 <= abstain < 0.5:
            raise InputError(f"abstain must be from 0 to below 0.5, not {abstain!r}")
        self.abstain = float(abstain)
        self.columns = None if columns is None else list(columns)
        self.rates = self._checked_rates(rates)
        self.calibrator: Any = None

    def __deepcopy__(self, memo: Any) -> Teacher:
        return self  # it never changes: scikit-learn's clone need not copy a network

    def __repr__(self) -> str:
        return f"<Teacher {self.name}: {len(self.labels)} labels, {self.kind}>"

    @property
    def kind(self) -> str:
        """What it lets others do: "chain", "network" or "black box"."""
        if hasattr(self.model, "chain_logits"):
            return "chain"
        return "network" if hasattr(self.model, "network_") else "black box"

    @property
    def margin(self) -> float:
        """Log odds that its word must have to count."""
        return float(logit(0.5 + self.abstain))

    # -- what it says ------------------------------------------------------------------

    def probabilities(self, X: Any) -> np.ndarray:
        """P(label | x) of each row, checked, in the order of `labels`."""
        found = as_probabilities(self._answer(X), self.labels, count_rows(X), self.name, self.model)
        return found if self.calibrator is None else self.calibrator.transform(found)

    def logits(self, X: Any) -> np.ndarray:
        """Log odds of each label, bounded."""
        return log_odds(self.probabilities(X), LOGIT_EPS, np.float32)

    def revise(self, X: Any, start: np.ndarray) -> np.ndarray:
        """Log odds of a chain that starts from given log odds (Eq. 3); chains only."""
        own = self.model.chain_logits(self.features(X), start=start)
        p = as_probabilities(expit(own.astype(np.float64)), self.labels, len(own), self.name)
        p = p if self.calibrator is None else self.calibrator.transform(p)
        return log_odds(p, LOGIT_EPS, np.float32)

    def calibrated(self, X: Any, Y: Any, method: str = "temperature") -> Self:
        """The same teacher with probabilities calibrated on a few labelled rows.

        Parameters
        ----------
        X : rows that the teacher was not trained on
        Y : labels of these rows, in the order of `labels`; NaN where they are not known
        method : {"temperature", "sigmoid", "isotonic"}, default="temperature"
            As in :class:`labelweave.calibration.LabelCalibrator`.
        """
        from labelweave.calibration import LabelCalibrator

        other = object.__new__(type(self))
        vars(other).update(vars(self))
        other.calibrator = None
        other.calibrator = LabelCalibrator(method).fit(Y, other.probabilities(X))
        return other

    def features(self, X: Any) -> Any:
        """The rows as the model takes them."""
        if self.columns is None:
            return X
        return X.iloc[:, self.columns] if hasattr(X, "iloc") else X[:, self.columns]

    # -- reading -----------------------------------------------------------------------

    def _answer(self, X: Any) -> Any:
        ask = _question(self.model)
        try:
            return ask(self.features(X))
        except InputError as error:
            raise InputError(f"teacher {self.name!r}: {error}") from error
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise InputError(
                f"teacher {self.name!r} cannot score these rows: {' '.join(str(error).split())}"
            ) from error

    def _checked_labels(self, labels: Sequence[str] | None) -> tuple[str, ...]:
        own = _labels_of(self.model)
        if labels is None:
            if own is None:
                raise InputError(
                    f"the model of teacher {self.name!r} does not tell its labels: "
                    "pass Teacher(model, labels)"
                )
            labels = own
        chosen = tuple(str(label) for label in labels)
        if not chosen:
            raise InputError(f"teacher {self.name!r} has no labels")
        if len(set(chosen)) < len(chosen):
            twice = next(label for label in chosen if chosen.count(label) > 1)
            raise InputError(f"teacher {self.name!r} has the label {twice!r} twice: names differ")
        if own is not None and len(own) != len(chosen):
            raise InputError(
                f"teacher {self.name!r} was given {len(chosen)} labels, but its model has "
                f"{len(own)}"
            )
        return chosen

    def _checked_rates(self, rates: Sequence[float] | None) -> np.ndarray | None:
        if rates is None:
            rates = getattr(self.model, "label_prevalence_", None)
            if rates is None or len(rates) != len(self.labels):
                return None
        found = np.asarray(rates, dtype=np.float64)
        if found.shape != (len(self.labels),) or (found < 0).any() or (found > 1).any():
            raise InputError(
                f"rates of teacher {self.name!r} must be {len(self.labels)} shares from 0 to 1, "
                "one for each of its labels"
            )
        return found


def as_teachers(given: Any) -> list[Teacher]:
    """At least two teachers, with names that differ; bare models that tell their labels too."""
    if isinstance(given, Teacher | str | PathLike | Mapping) or not hasattr(given, "__iter__"):
        raise InputError("teachers must be a sequence of at least two teachers")
    teachers = [one if isinstance(one, Teacher) else Teacher(one) for one in given]
    if len(teachers) < 2:
        raise InputError(
            f"amalgamation needs at least two teachers, not {len(teachers)}: "
            "teachers=[Teacher(model, labels), ...]"
        )
    for k, teacher in enumerate(teachers):
        for other in teachers[:k]:
            if other.model is teacher.model and other.labels == teacher.labels:
                raise InputError(
                    f"teachers {other.name!r} and {teacher.name!r} are the same model: "
                    "give each model once"
                )
    return teachers


def unique_names(teachers: Sequence[Teacher]) -> list[str]:
    """The teachers' names, numbered where two are called alike.

    >>> one, two = (Teacher(abs, [label], name="svm") for label in "ab")
    >>> unique_names([one, two])
    ['svm', 'svm-2']
    """
    taken: list[str] = []
    for teacher in teachers:
        name, number = teacher.name, 1
        while name in taken:
            number += 1
            name = f"{teacher.name}-{number}"
        taken.append(name)
    return taken


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """Some rows of an array, a sparse matrix, a DataFrame or a sequence of texts."""
    return _safe_indexing(X, rows)


def _loaded(model: Any) -> Any:
    if isinstance(model, str) and model.startswith(("http://", "https://")):
        from labelweave.scattered.remote import RemoteModel

        return RemoteModel(model)
    if isinstance(model, str | PathLike):
        from labelweave.persistence import load

        return load(model)
    if isinstance(model, type) or not (
        callable(model) or any(hasattr(model, name) for name in _QUESTIONS)
    ):
        raise InputError(
            f"{model!r} cannot teach: give a fitted classifier, a model folder, a URL or a function"
        )
    return model


_QUESTIONS = ("predict_proba", "decision_function", "predict")


def _question(model: Any) -> Callable[[Any], Any]:
    """The best thing to ask a model: probabilities, decision values, or votes."""
    for name in _QUESTIONS:
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

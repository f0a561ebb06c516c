"""The student: which estimator learns, and how it is trained."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.exceptions import LabelweaveWarning
from labelweave.labels import LabelMatrix
from labelweave.methods import get_class, make
from labelweave.scattered.teacher import take_rows

_LEARNING_RATES = ("lr", "classifier__lr")  # the latter of a student for texts
_SLOWER = 0.3  # factor of the learning rate for a student that has learnt nothing
_CONSTANT = 0.02  # spread of its probabilities over rows, as a share of that of its targets


def default_chain() -> Any:
    """An order-free chain for few rows.

    With the defaults of OFCC, larger batches and smaller steps, it would not have converged when
    its epochs are over.
    """
    return make("ofcc", lr=1e-2, batch_size=32)


def published_student(dataset: str | None = None, *, source: str = "program") -> Any:
    """The student in the tables of the ANT paper, which all compared methods share."""
    chain: Any = get_class("ofcc")
    return chain.published(dataset, source=source, role="student")


def make_student(student: Any) -> Any:
    """An unfitted student from an estimator or the id of a method.

    No true labels are known here, so that none are revealed to a chain in training.
    """
    model = make(student) if isinstance(student, str) else clone(student)
    if "reveal" in model.get_params(deep=False):
        model.set_params(reveal=0.0)
    return model


def fit_student(
    student: Any,
    X: Any,
    targets: LabelMatrix,
    n_train: int,
    *,
    build_task: Callable[..., Any] | None = None,
) -> Any:
    """Fit a student to the first `n_train` rows and validate it on the others.

    A student that then predicts the same for every row, although the teachers do not, is trained
    once more with a lower learning rate, with a warning. `build_task`, a function of (network,
    session), makes an objective in place of the student's own, for neural students.
    """
    train = np.arange(n_train)
    X_train, train_targets = take_rows(X, train), targets[train]
    options: dict[str, Any] = {}
    if n_train < len(targets):
        held_out = np.arange(n_train, len(targets))
        options["validation"] = (take_rows(X, held_out), targets[held_out])
    fitted = _fit(student, X_train, train_targets, options, build_task)
    parameters = student.get_params()
    rate = next((name for name in _LEARNING_RATES if name in parameters), None)
    if rate is None or not _is_constant(fitted, X_train, train_targets):
        return fitted
    slower = _SLOWER * parameters[rate]
    warnings.warn(
        f"the student predicted the same for every row and is trained again with {rate}={slower:g}",
        LabelweaveWarning,
        stacklevel=2,
    )
    return _fit(
        clone(student).set_params(**{rate: slower}), X_train, train_targets, options, build_task
    )


def _fit(
    student: Any,
    X: Any,
    targets: LabelMatrix,
    options: dict[str, Any],
    build_task: Callable[..., Any] | None,
) -> Any:
    if build_task is None:
        return student.fit(X, targets, **options)
    return student.fit_objective(X, targets, build_task, **options)


def _is_constant(student: Any, X: Any, targets: LabelMatrix) -> bool:
    """Whether the student predicts nearly the same for all rows: its first steps were too long."""
    expected = np.nanstd(targets.to_numpy(), axis=0)
    predicted = np.std(student.predict_proba(X), axis=0)
    return bool(predicted.mean() < _CONSTANT * expected.mean())

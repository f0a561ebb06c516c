"""The student: which estimator learns, and from probabilities or from labels."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.capabilities import capabilities
from labelweave.exceptions import LabelweaveWarning
from labelweave.labels import LabelMatrix
from labelweave.methods import make
from labelweave.scattered.teacher import take_rows

__all__ = ["fit_student", "made_student", "takes_probabilities"]

# With its own defaults the chain, of larger batches and smaller steps, would still be learning when
# its epochs are over: rows without labels are often few.
_CHAIN = {"lr": 1e-2, "batch_size": 32}
_RATES = ("lr", "classifier__lr")  # the latter of a student for texts
_SLOWER = 0.3  # a student that has learnt nothing gets that part of its learning rate
_SAME = 0.02  # spread of its probabilities over rows, in that of what it was taught


def made_student(student: Any, *, is_text: bool) -> Any:
    """An unfitted student; by default an order-free chain.

    A chain is never shown labels in training: which of them are true nobody knows here.
    """
    if student is None:
        chosen = make("ofcc", **_CHAIN)
    else:
        chosen = make(student) if isinstance(student, str) else clone(student)
    if "reveal" in chosen.get_params(deep=False):
        chosen.set_params(reveal=0.0)
    if is_text and student is None:
        from labelweave.text import TextClassifier

        return TextClassifier(chosen)
    return chosen


def takes_probabilities(student: Any) -> bool:
    """Whether the objective of a student is cross-entropy, which probabilities may enter.

    >>> takes_probabilities(make("mlp")), takes_probabilities(make("mlknn"))
    (True, False)
    """
    return capabilities(student).soft_targets


def fit_student(
    student: Any,
    X: Any,
    targets: LabelMatrix,
    n_train: int,
    *,
    build_task: Callable[..., Any] | None = None,
) -> Any:
    """Fit a student to the first `n_train` rows; the others tell it when to stop.

    One that then says the same of every row, though the teachers do not, is trained once more with
    a lower learning rate, and a warning says so.

    Parameters
    ----------
    student : unfitted estimator
    X : rows
    targets : LabelMatrix
    n_train : int
    build_task : function of (network, session), optional
        An objective in the place of the student's own, for neural students.
    """
    train = np.arange(n_train)
    rows, said = take_rows(X, train), targets[train]
    more: dict[str, Any] = {}
    if n_train < len(targets):
        held = np.arange(n_train, len(targets))
        more["validation"] = (take_rows(X, held), targets[held])
    fitted = _fit(student, rows, said, more, build_task)
    rate = next((name for name in _RATES if name in student.get_params()), None)
    if rate is None or not _says_the_same_of_all(fitted, rows, said):
        return fitted
    slower = _SLOWER * student.get_params()[rate]
    warnings.warn(
        f"the student said the same of every row and is trained again with {rate}={slower:g}",
        LabelweaveWarning,
        stacklevel=2,
    )
    return _fit(clone(student).set_params(**{rate: slower}), rows, said, more, build_task)


def _fit(
    student: Any,
    X: Any,
    targets: LabelMatrix,
    more: dict[str, Any],
    build_task: Callable[..., Any] | None,
) -> Any:
    if build_task is not None:
        # The objective belongs to the amalgamation, not to the class of the student.
        vars(student)["_build_task"] = build_task
    try:
        return student.fit(X, targets, **more)
    finally:
        vars(student).pop("_build_task", None)


def _says_the_same_of_all(student: Any, X: Any, targets: LabelMatrix) -> bool:
    """Whether first steps were so long that nothing in the network answers to a row any more."""
    wanted = np.nanstd(targets.to_numpy(), axis=0)
    found = np.std(student.predict_proba(X), axis=0)
    return bool(found.mean() < _SAME * wanted.mean())

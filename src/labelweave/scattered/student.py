"""The student: which estimator learns, and from probabilities or from labels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.labels import LabelMatrix
from labelweave.registry import make
from labelweave.scattered.teacher import take_rows

__all__ = ["fit_student", "made_student", "takes_probabilities"]

# Rows without labels are often few: with the chain's own defaults, of larger batches and smaller
# steps, it would still be learning when its epochs are over.
_FEWEST_STEPS = 30  # in what counts as an epoch, or patience is over before anything is learnt
_STUDENT = {"reveal": 0.0, "lr": 1e-2, "batch_size": 32}


def made_student(student: Any, *, is_text: bool) -> Any:
    """An unfitted student; by default an order-free chain.

    A chain is never shown labels in training: which of them are true nobody knows here.
    """
    if student is None:
        chosen = make("ofcc", **_STUDENT)
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
    core = getattr(student, "classifier", None) or student
    if getattr(core, "method_id", None) == "ofcc":
        return core.reveal == 0
    return getattr(core, "method_id", None) == "mlp" and core.loss == "bce"


def fit_student(
    student: Any,
    X: Any,
    targets: LabelMatrix,
    n_train: int,
    *,
    build_task: Callable[..., Any] | None = None,
) -> Any:
    """Fit a student to the first `n_train` rows; the others tell it when to stop.

    Parameters
    ----------
    student : unfitted estimator
    X : rows
    targets : LabelMatrix
    n_train : int
    build_task : function of (network, session), optional
        An objective in the place of the student's own, for neural students.
    """
    n_rows = len(targets)
    train, held = np.arange(n_train), np.arange(n_train, n_rows)
    more: dict[str, Any] = {}
    if len(held):
        more["validation"] = (take_rows(X, held), targets[held])
    own: dict[str, Any] = {}
    if build_task is not None:
        # The objective belongs to the amalgamation, not to the class of the student.
        own["_build_task"] = build_task
    if 0 < n_train < _FEWEST_STEPS * getattr(student, "batch_size", 0):
        own["steps_per_epoch"] = _FEWEST_STEPS
    vars(student).update(own)
    try:
        return student.fit(take_rows(X, train), targets[train], **more)
    finally:
        for name in own:
            vars(student).pop(name, None)

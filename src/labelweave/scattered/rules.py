"""Integration of the opinions of a lesson, with the weights that a rule needs."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.scattered.integration import integrate
from labelweave.scattered.lesson import Lesson
from labelweave.scattered.reliability import reliability

__all__ = ["integrated"]


def integrated(logits: np.ndarray, rule: str, lesson: Lesson, notes: dict[str, Any]) -> np.ndarray:
    """One probability a row and label; reliabilities that the rule needs are noted.

    Parameters
    ----------
    logits : array of shape (teachers, rows, labels)
        Opinions of the teachers on the rows of the lesson, revised or not.
    rule : str
        As for :func:`labelweave.scattered.integration.integrate`.
    lesson : Lesson
    notes : dict
        Where to note the weights.
    """
    if rule != "reliability":
        return integrate(logits, rule)
    found = reliability(lesson.opinions.heard(), lesson.truth)
    notes["reliability"] = dict(zip(lesson.opinions.names, found.weight.tolist(), strict=True))
    return integrate(logits, rule, found.weight.astype(np.float32))

"""Label prevalence in the training rows of the teachers, and logits shifted towards it."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from labelweave.scattered._amalgamation.teacher_predictions import TeacherPredictions
from labelweave.thresholds.threshold_search import threshold_between

_MIN_PREVALENCE = 1e-3  # a label without positives in the teachers' rows may still occur
_MAX_SHIFT = 12.0
_BISECTIONS = 40
_SMALLEST_GAP = 1e-3  # between the highest or lowest logit and a threshold beyond it


def mean_prevalence(predictions: TeacherPredictions) -> np.ndarray:
    """The mean prevalence of each label over the teachers that know it; NaN where none does."""
    n_labels = len(predictions.vocabulary.names)
    total, n_teachers = np.zeros(n_labels), np.zeros(n_labels)
    for teacher, columns in zip(predictions.teachers, predictions.vocabulary.columns, strict=True):
        if teacher.prevalence is not None:
            total[columns] += np.nan_to_num(teacher.prevalence)
            n_teachers[columns] += ~np.isnan(teacher.prevalence)
    return np.where(n_teachers > 0, total / np.maximum(n_teachers, 1), np.nan)


def prevalence_shift(logits: np.ndarray, prevalence: np.ndarray) -> np.ndarray:
    """What must be added to the logits of a label to make its mean probability its prevalence.

    `logits` (rows, labels) are NaN where there is no prediction. The shift is 0 where the
    prevalence is NaN, unknown.

    >>> logits = np.array([[0.0, 1.0], [0.0, 2.0]])
    >>> prevalence_shift(logits, np.array([0.25, np.nan])).round(2)
    array([-1.1,  0. ])
    """
    predicted = ~np.isnan(logits)
    n = np.maximum(predicted.sum(axis=0), 1)
    target = np.clip(prevalence, _MIN_PREVALENCE, 1 - _MIN_PREVALENCE)
    low, high = np.full(len(target), -_MAX_SHIFT), np.full(len(target), _MAX_SHIFT)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        mean = np.where(predicted, expit(logits + middle), 0.0).sum(axis=0) / n
        low, high = np.where(mean < target, middle, low), np.where(mean < target, high, middle)
    unknown = np.isnan(prevalence) | ~predicted.any(axis=0)
    return np.where(unknown, 0.0, (low + high) / 2)


def shift_to_count(logits: np.ndarray, n_positive: int) -> float:
    """What must be subtracted from all logits for `n_positive` of them to be above 0.

    >>> shift_to_count(np.array([[2.0, 1.0, -1.0]]), 1)
    1.5
    """
    ranked = np.sort(logits, axis=None)[::-1]
    last = ranked[n_positive - 1] if n_positive else ranked[0] + 2 * _SMALLEST_GAP
    following = ranked[n_positive] if n_positive < ranked.size else ranked[-1] - 2 * _SMALLEST_GAP
    return 0.0 if following <= 0 < last else float(threshold_between(following, last))

"""What ANT here does beyond its paper: the student's logits are shifted to the label prevalence.

A student of few rows predicts some labels too often and others too rarely. Teachers that know the
prevalence of their labels say how often each should be positive, and their mean probability says
how many of the student's positive predictions are likely to be right.
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from labelweave.scattered._amalgamation.prevalence import prevalence_shift, shift_to_count

__all__ = ["count_positives", "mean_probability", "prevalence_correction"]


def prevalence_correction(
    student_logits: np.ndarray,
    teacher_logits: np.ndarray,
    prevalence: np.ndarray,
    *,
    weight: float,
    min_precision: float,
) -> np.ndarray:
    """What is added to the student's logits of each label.

    1. For each label, the shift with which its mean probability is its prevalence, times `weight`.
    2. For all labels, one common shift, after which :func:`count_positives` of them are positive.

    Parameters
    ----------
    student_logits : array of shape (rows, labels)
    teacher_logits : array of shape (teachers, rows, labels)
        NaN where a label is not one of the teacher's.
    prevalence : array of shape (labels,)
        NaN where it is unknown: step 1 leaves these labels out.
    weight, min_precision : float
    """
    shift = weight * prevalence_shift(student_logits, prevalence)
    shifted = student_logits + shift
    consensus = mean_probability(teacher_logits, prevalence, weight)
    n_positive = count_positives(shifted, consensus, min_precision)
    return shift - shift_to_count(shifted, n_positive)


def mean_probability(logits: np.ndarray, prevalence: np.ndarray, weight: float) -> np.ndarray:
    """The mean of the teachers' probabilities, each teacher shifted towards the prevalence.

    Parameters
    ----------
    logits : array of shape (teachers, rows, labels)
        NaN where a label is not one of the teacher's.
    prevalence : array of shape (labels,)
    weight : float
        From 0, no shift, to 1.
    """
    known = ~np.isnan(logits)
    shifted = [
        expit(teacher + weight * prevalence_shift(teacher, prevalence))
        for teacher in logits.astype(np.float64)
    ]
    return np.where(known, shifted, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def count_positives(logits: np.ndarray, consensus: np.ndarray, min_precision: float) -> int:
    """The number of entries that should be positive, those with the highest logits first.

    It is the sum of their probabilities, or less: the largest number of entries with a mean
    `consensus` of at least `min_precision`.

    >>> logits = np.array([[2.0, 1.0], [0.5, -1.0]])
    >>> consensus = np.array([[0.9, 0.5], [0.2, 0.1]])
    >>> count_positives(logits, consensus, 0.5), count_positives(logits, consensus, 0.6)
    (3, 2)
    """
    ranked = np.argsort(-logits, axis=None, kind="stable")
    precision = np.cumsum(consensus.ravel()[ranked]) / np.arange(1, logits.size + 1)
    precise = np.flatnonzero(precision >= min_precision)
    n_expected = round(float(expit(logits).sum()))
    return min(n_expected, int(precise[-1]) + 1 if len(precise) else 0)

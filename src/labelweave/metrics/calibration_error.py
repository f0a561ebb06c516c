"""Expected calibration error: how far probabilities are from observed frequencies.

`Y_score` holds probabilities; the other parameters are those of
:mod:`labelweave.metrics.labelwise`.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from labelweave.exceptions import InputError
from labelweave.metrics._inputs import check_score, check_weight, chunks, mean_of_defined

__all__ = ["calibration_bins", "ece", "ece_macro", "ece_of_labels"]


def ece(Y_true: Any, Y_score: Any, *, n_bins: int = 15, sample_weight: Any = None) -> float:
    """Expected calibration error of all known entries together.

    The probabilities P(label = 1) fall into `n_bins` bins of equal width, (0, 1/n], (1/n, 2/n],
    ..., 0 belonging to the first. The error is the mean over the entries of the distance, in
    the entry's bin, between the mean probability and the share of positives.

    Examples
    --------
    >>> round(ece([[1, 0], [1, 1]], [[0.9, 0.2], [0.9, 0.9]]), 3)
    0.125
    """
    mass, expected, positive = calibration_bins(Y_true, Y_score, n_bins, sample_weight)
    pooled = (part.sum(axis=0, keepdims=True) for part in (mass, expected, positive))
    return float(_error(*pooled)[0])


def ece_of_labels(
    Y_true: Any, Y_score: Any, *, n_bins: int = 15, sample_weight: Any = None
) -> np.ndarray:
    """Expected calibration error of each label, binned as in :func:`ece`.

    nan for a label without a known entry.

    Examples
    --------
    >>> ece_of_labels([[1, 0], [1, 1]], [[0.9, 0.2], [0.9, 0.9]]).round(3)
    array([0.1 , 0.15])
    """
    return _error(*calibration_bins(Y_true, Y_score, n_bins, sample_weight))


def ece_macro(Y_true: Any, Y_score: Any, *, n_bins: int = 15, sample_weight: Any = None) -> float:
    """Mean of :func:`ece_of_labels` over the labels with a known entry.

    Never smaller than :func:`ece` if all labels have the same number of known entries, because
    errors of opposite sign do not cancel between labels.
    """
    errors = ece_of_labels(Y_true, Y_score, n_bins=n_bins, sample_weight=sample_weight)
    return mean_of_defined(errors)


def _error(mass: np.ndarray, expected: np.ndarray, positive: np.ndarray) -> np.ndarray:
    gaps, total = np.abs(expected - positive).sum(axis=1), mass.sum(axis=1)
    return np.divide(gaps, total, out=np.full(len(total), np.nan), where=total > 0)


def calibration_bins(
    Y_true: Any, Y_score: Any, n_bins: int = 15, sample_weight: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count entries, probabilities and positives per label and bin, (n_labels, n_bins) each.

    >>> [part.tolist() for part in calibration_bins([[1], [0]], [[0.75], [0.25]], n_bins=2)]
    [[[1.0, 1.0]], [[0.25, 0.75]], [[0.0, 1.0]]]
    """
    if not isinstance(n_bins, Integral) or n_bins < 1:
        raise InputError(f"n_bins must be a whole number of at least 1, not {n_bins!r}")
    truth, scores = check_score(Y_true, Y_score)
    if scores.min() < 0 or scores.max() > 1:
        raise InputError(
            f"Y_score runs from {scores.min():g} to {scores.max():g}, but calibration is "
            "measured on probabilities from 0 to 1"
        )
    weight = check_weight(sample_weight, truth.n_rows)
    size = truth.n_labels * n_bins
    sums = np.zeros((3, size))
    for rows in chunks(*truth.shape):
        values, chunk = truth[rows].to_numpy(), scores[rows]
        bins = np.clip(np.ceil(chunk * n_bins).astype(np.int64) - 1, 0, n_bins - 1)
        cell = (bins + np.arange(truth.n_labels) * n_bins).ravel()
        mass = (~np.isnan(values)).astype(np.float64)
        if weight is not None:
            mass = mass * weight[rows, None]
        for total, summand in zip(sums, (mass, mass * chunk, mass * (values == 1)), strict=True):
            total += np.bincount(cell, weights=summand.ravel(), minlength=size)
    return tuple(sums.reshape(3, truth.n_labels, n_bins))

"""The number of labels per row: its distribution, and what it implies for each label.

Models of one label each, or teachers of some of the labels each, treat labels as independent given
the row. The number of labels then follows a Poisson binomial distribution, in which rows without
any label and rows with many are too probable. A weight for each number of labels corrects this:
P(y | x) is proportional to weight(|y|) times the product over the labels.
"""

from __future__ import annotations

import numpy as np

from labelweave.rows import row_chunks

MAX_COUNT = 64  # this number of labels or more counts as one number
_ITERATIONS = 8
_SMOOTHING = 1e-3  # added to the shares of rows, so that rare numbers of labels have finite weights


def count_probabilities(p: np.ndarray) -> np.ndarray:
    """P(a row has k labels) for independent labels, k = 0, 1, ... up to `MAX_COUNT`.

    >>> count_probabilities(np.array([[0.5, 0.5]]))
    array([[0.25, 0.5 , 0.25]])
    """
    counts = np.zeros((len(p), min(p.shape[1], MAX_COUNT) + 1))
    counts[:, 0] = 1
    for label in p.T:
        counts = _add_label(counts, label)
    return counts


def sharpened_counts(p: np.ndarray, power: float) -> np.ndarray:
    """The share of rows with k labels, from sharpened probabilities of each row's number.

    The probabilities of the numbers of labels of each row are raised to `power` and normalised; 1
    changes nothing.

    >>> sharpened_counts(np.array([[0.8, 0.2]]), 2.0).round(2)
    array([0.05, 0.9 , 0.05])
    """
    counts = count_probabilities(p)
    sharp = (counts / counts.max(axis=1, keepdims=True)) ** power
    return (sharp / sharp.sum(axis=1, keepdims=True)).mean(axis=0)


def count_weights(p: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Weights of the numbers of labels with which the shares of rows with k labels are `shares`."""
    counts = count_probabilities(p)
    weights = np.ones(counts.shape[1])
    for _ in range(_ITERATIONS):
        posterior = counts * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = weights * (shares + _SMOOTHING) / (posterior.mean(axis=0) + _SMOOTHING)
        weights /= weights.max()
    return weights


def reweight_by_count(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """P(label | x) under weights of the numbers of labels, computed exactly for each row.

    The contributions of the labels before and after a label are summed from both ends, so that
    there is no division and no loss of digits.

    >>> at_least_one = np.array([0.0, 1.0, 1.0])
    >>> reweight_by_count(np.array([[0.5, 0.5]]), at_least_one).round(2)
    array([[0.67, 0.67]])
    """
    reweighted = np.empty(p.shape)
    for rows in row_chunks(len(p), (p.shape[1] + 1) * len(weights)):
        reweighted[rows] = _reweight_chunk(p[rows].astype(np.float64), weights)
    return reweighted


def _reweight_chunk(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    before = [np.eye(1, len(weights)).repeat(len(p), axis=0)]
    for label in p.T[:-1]:
        before.append(_add_label(before[-1], label))
    # The expected weight of a row, by the number of labels among those before.
    after = np.tile(weights, (len(p), 1))
    reweighted = np.empty_like(p)
    for j in range(p.shape[1] - 1, -1, -1):
        label = p[:, j]
        if_positive = np.concatenate([after[:, 1:], after[:, -1:]], axis=1)
        yes = label * np.einsum("nk,nk->n", before[j], if_positive)
        no = (1 - label) * np.einsum("nk,nk->n", before[j], after)
        reweighted[:, j] = yes / np.maximum(yes + no, np.finfo(np.float64).tiny)
        after = label[:, None] * if_positive + (1 - label[:, None]) * after
    return reweighted


def _add_label(counts: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The probabilities of the numbers of labels with one more label."""
    positive = counts * label[:, None]
    following = counts - positive
    following[:, 1:] += positive[:, :-1]
    following[:, -1] += positive[:, -1]
    return following

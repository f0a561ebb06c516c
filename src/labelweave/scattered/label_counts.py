"""How many labels a row has: a belief about that, and what it makes of each label's probability.

Models of one label each, or teachers that know some of the labels each, take labels to be
independent given the row. The number of labels then follows a Poisson binomial distribution, which
leaves too much chance to rows without any and to rows with many. A weight for each number of
labels puts that right: P(y | x) is proportional to weight(|y|) times the product over the
labels.
"""

from __future__ import annotations

import numpy as np

from labelweave.rows import row_chunks

__all__ = ["count_chances", "count_weights", "reweighted", "sharpened_counts"]

MOST_COUNTED = 64  # so many labels or more are one number
_ROUNDS = 8
_RARE = 1e-3  # numbers of labels that are rarer than this are hardly told apart


def count_chances(p: np.ndarray) -> np.ndarray:
    """P(a row has k labels) for independent labels, k = 0, 1, ... up to `MOST_COUNTED`.

    Parameters
    ----------
    p : array of shape (rows, labels)
        Probabilities.

    Returns
    -------
    array of shape (rows, k)

    Examples
    --------
    >>> count_chances(np.array([[0.5, 0.5]]))
    array([[0.25, 0.5 , 0.25]])
    """
    chances = np.zeros((len(p), min(p.shape[1], MOST_COUNTED) + 1))
    chances[:, 0] = 1
    for label in p.T:
        chances = _one_more(chances, label)
    return chances


def sharpened_counts(p: np.ndarray, power: float) -> np.ndarray:
    """How often rows have k labels, when each row is surer of its number than `p` makes it.

    The chances of a row's numbers are raised to `power` and sum to one again; 1 changes nothing.

    >>> sharpened_counts(np.array([[0.8, 0.2]]), 2.0).round(2)
    array([0.05, 0.9 , 0.05])
    """
    chances = count_chances(p)
    sharp = (chances / chances.max(axis=1, keepdims=True)) ** power
    return (sharp / sharp.sum(axis=1, keepdims=True)).mean(axis=0)


def count_weights(p: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Weights of the numbers of labels, with which rows have k labels as often as is wanted.

    Parameters
    ----------
    p : array of shape (rows, labels)
    wanted : array of shape (k,)
        How often rows shall have k labels.
    """
    chances = count_chances(p)
    weights = np.ones(chances.shape[1])
    for _ in range(_ROUNDS):
        posterior = chances * weights
        posterior /= posterior.sum(axis=1, keepdims=True)
        weights = weights * (wanted + _RARE) / (posterior.mean(axis=0) + _RARE)
        weights /= weights.max()
    return weights


def reweighted(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """P(label | x) under weights of the numbers of labels, exactly, for each row by itself.

    What the labels before and after one add to the number of labels is summed up from both ends,
    so that nothing is divided and no digits are lost.

    Parameters
    ----------
    p : array of shape (rows, labels)
    weights : array of shape (k,)
        Of `count_weights`.

    Examples
    --------
    >>> at_least_one = np.array([0.0, 1.0, 1.0])
    >>> reweighted(np.array([[0.5, 0.5]]), at_least_one).round(2)
    array([[0.67, 0.67]])
    """
    found = np.empty(p.shape)
    for rows in row_chunks(len(p), (p.shape[1] + 1) * len(weights)):
        found[rows] = _reweighted(p[rows].astype(np.float64), weights)
    return found


def _reweighted(p: np.ndarray, weights: np.ndarray) -> np.ndarray:
    before = [np.eye(1, len(weights)).repeat(len(p), axis=0)]
    for label in p.T[:-1]:
        before.append(_one_more(before[-1], label))
    # The weight that a row will have, by the number of labels among those seen so far.
    ahead = np.tile(weights, (len(p), 1))
    found = np.empty_like(p)
    for place in range(p.shape[1] - 1, -1, -1):
        label, so_far = p[:, place], before[place]
        one_more = np.concatenate([ahead[:, 1:], ahead[:, -1:]], axis=1)
        yes = label * np.einsum("nk,nk->n", so_far, one_more)
        no = (1 - label) * np.einsum("nk,nk->n", so_far, ahead)
        found[:, place] = yes / np.maximum(yes + no, np.finfo(np.float64).tiny)
        ahead = label[:, None] * one_more + (1 - label[:, None]) * ahead
    return found


def _one_more(chances: np.ndarray, label: np.ndarray) -> np.ndarray:
    """The chances of the numbers of labels with one more label."""
    positive = chances * label[:, None]
    following = chances - positive
    following[:, 1:] += positive[:, :-1]
    following[:, -1] += positive[:, -1]
    return following

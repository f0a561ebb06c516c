"""Small synthetic data on which a method must do well."""

from __future__ import annotations

import numpy as np

__all__ = ["NAMES", "blobs", "hidden", "linear"]

NAMES = ("sea", "sun", "rain")


def linear(n_rows: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows whose three labels depend on one feature each, with three features of noise.

    About every fourth entry of X is zero.

    >>> X, Y = linear()
    >>> X.shape, Y.shape
    ((60, 6), (60, 3))
    """
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 6)) * [2, 2, 2, 1, 1, 1]
    X[random.random(X.shape) < 0.25] = 0
    Y = X[:, :3] + 0.2 * random.normal(size=(n_rows, 3)) > [0.1, -0.2, 0.3]
    return X, Y.astype(np.int64)


def blobs(rows_each: int = 20, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Four groups of rows, far from each other, each with a label set of its own.

    One group has no label at all.
    """
    random = np.random.default_rng(seed)
    centres = np.array([[8.0, 0, 0, 0], [0, 8, 0, 0], [0, 0, 8, 0], [0, 0, 0, 8]])
    sets = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0]])
    group = random.permutation(np.repeat(np.arange(4), rows_each))
    return centres[group] + random.normal(size=(len(group), 4)), sets[group]


def hidden(Y: np.ndarray, state: int, label: int, share: float = 0.6, seed: int = 0) -> np.ndarray:
    """Where to hide a share of the entries of one label that are in this state."""
    random = np.random.default_rng(seed)
    where = np.zeros(Y.shape, dtype=bool)
    where[:, label] = (Y[:, label] == state) & (random.random(len(Y)) < share)
    return where

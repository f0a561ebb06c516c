"""What the checks share: their description, small data sets, trained models and assertions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import average_precision_score

__all__ = [
    "NAMES",
    "Check",
    "blobs",
    "fresh",
    "hidden",
    "linear",
    "mean_ap",
    "refused",
    "same",
    "trained",
]

NAMES = ("sea", "sun", "rain")  # not sorted


@dataclass(frozen=True)
class Check:
    """One check of the contract.

    Parameters
    ----------
    function : callable
        Takes an unfitted estimator, and raises if the estimator breaks the rule.
    trains : bool, default=False
        Whether the result depends on what is learnt. If not, the estimator that the function
        receives trains for two epochs only.
    of_variants : bool, default=False
        Whether the check also runs on the variants of a method. A variant shares the code that
        handles inputs and outputs with its method, and differs in its network, its loss or a rule.
    """

    function: Callable[[Any], None]
    trains: bool = False
    of_variants: bool = False

    @property
    def name(self) -> str:
        """The name of the function without its prefix."""
        return self.function.__name__.removeprefix("check_")


def fresh(estimator: Any, **parameters: Any) -> Any:
    """Return a clone with ``random_state=0`` and these parameters."""
    return clone(estimator).set_params(**{"random_state": 0, **parameters})


@lru_cache(maxsize=2)
def trained(estimator: Any) -> Any:
    """Return a model fitted to :func:`linear`, shared by the checks that only ask for predictions.

    Its threshold is 0.4, its labels are called `NAMES`.
    """
    import pandas as pd

    X, Y = linear()
    return fresh(estimator, threshold=0.4).fit(X, pd.DataFrame(Y, columns=list(NAMES)))


def linear(n_rows: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows whose three labels depend on one feature each, with three features of noise.

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
    """Draw four groups of rows, far from each other, each with its own label set.

    One group has no label at all.
    """
    random = np.random.default_rng(seed)
    centres = np.array([[8.0, 0, 0, 0], [0, 8, 0, 0], [0, 0, 8, 0], [0, 0, 0, 8]])
    sets = np.array([[1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 0]])
    group = random.permutation(np.repeat(np.arange(4), rows_each))
    return centres[group] + random.normal(size=(len(group), 4)), sets[group]


def hidden(Y: np.ndarray, state: int, label: int, share: float = 0.6, seed: int = 0) -> np.ndarray:
    """Return a mask that hides a share of the entries of one label that are in this state."""
    random = np.random.default_rng(seed)
    mask = np.zeros(Y.shape, dtype=bool)
    mask[:, label] = (Y[:, label] == state) & (random.random(len(Y)) < share)
    return mask


def same(actual: Any, expected: Any, what: str, *, exact: bool = False) -> None:
    """Assert that two arrays are equal: to the bit, or up to rounding in float32."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape, f"{what}: shapes {actual.shape} and {expected.shape}"
    if exact:
        assert np.array_equal(actual, expected), f"{what}: not identical"
    else:
        worst = float(np.abs(actual - expected).max(initial=0))
        assert worst <= 1e-4, f"{what}: probabilities differ by up to {worst:.2g}"


def mean_ap(Y: np.ndarray, scores: np.ndarray) -> float:
    """Return the mean over the labels of the average precision, by scikit-learn."""
    return float(
        np.mean([average_precision_score(Y[:, j], scores[:, j]) for j in range(Y.shape[1])])
    )


@contextmanager
def refused(what: str, *words: str, error: type[Exception] = ValueError) -> Iterator[None]:
    """Assert that the block raises an error whose message contains these words."""
    try:
        yield
    except error as caught:
        message = str(caught)
        for word in words:
            assert word in message, f"{what}: the message does not contain {word!r}: {message}"
        return
    raise AssertionError(f"{what} was accepted")

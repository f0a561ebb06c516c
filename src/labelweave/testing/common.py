"""What the checks share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.metrics import average_precision_score

__all__ = ["fresh", "learns", "mean_ap", "refused", "same"]


def fresh(estimator: Any, **parameters: Any) -> Any:
    """A clone with a seed and these parameters."""
    return clone(estimator).set_params(**{"random_state": 0, **parameters})


def learns(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Mark a check that looks at what was learnt: its estimator trains as long as it says."""
    check.learns = True  # type: ignore[attr-defined]
    return check


def same(found: Any, expected: Any, what: str, *, exact: bool = False) -> None:
    """Assert that two arrays are equal: to the bit, or up to rounding in float32."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"{what}: shapes {found.shape} and {expected.shape}"
    if exact:
        assert np.array_equal(found, expected), f"{what}: not identical"
    else:
        worst = float(np.abs(found - expected).max(initial=0))
        assert worst <= 1e-4, f"{what}: probabilities differ by up to {worst:.2g}"


def mean_ap(Y: np.ndarray, scores: np.ndarray) -> float:
    """Mean over the labels of the average precision, by scikit-learn."""
    return float(
        np.mean([average_precision_score(Y[:, j], scores[:, j]) for j in range(Y.shape[1])])
    )


@contextmanager
def refused(what: str, *words: str, error: type[Exception] = ValueError) -> Iterator[None]:
    """Assert that the block raises one sentence that holds these words."""
    try:
        yield
    except error as caught:
        said = str(caught)
        for word in words:
            assert word in said, f"{what}: the message does not say {word!r}: {said}"
        return
    raise AssertionError(f"{what} was accepted")

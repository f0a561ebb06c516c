"""From probabilities to label sets.

A rule is asked for by a :class:`Threshold` object or by a short spec, wherever the library
takes ``threshold=``:

=========================  ===================================================================
spec                       rule
=========================  ===================================================================
``0.5`` (any number)       :class:`FixedThreshold`: positive where the score is at least 0.5
``"top-3"``                :class:`TopK`: the three best labels of each row
=========================  ===================================================================

A label is predicted where its score is *at least* the cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils._param_validation import Interval

from labelweave.exceptions import InputError

__all__ = ["FixedThreshold", "Threshold", "TopK", "make_threshold"]


class Threshold(BaseEstimator):
    """Base of the rules that turn scores into label sets.

    `fit(Y_true, Y_score)` tunes the rule (where there is anything to tune) on rows that the
    model was not trained on; `apply(Y_score)` gives an (n, L) array of 0 and 1.
    """

    kind: ClassVar[str]
    needs_validation: ClassVar[bool] = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {}
    _fitted: ClassVar[tuple[str, ...]] = ()

    def fit(self, Y_true: Any, Y_score: Any) -> Self:
        """Tune the rule on validation rows."""
        self._validate_params()
        return self

    def apply(self, Y_score: Any) -> np.ndarray:
        """The label sets, as an (n, L) int8 array of 0 and 1."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The rule as values that JSON can hold."""
        fitted = {name: getattr(self, name) for name in self._fitted if hasattr(self, name)}
        fitted = {n: v.tolist() if isinstance(v, np.ndarray) else v for n, v in fitted.items()}
        return {"kind": self.kind, "parameters": self.get_params(deep=False), "fitted": fitted}

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Threshold:
        """The rule that `to_dict` wrote."""
        rules = {rule.kind: rule for rule in Threshold.__subclasses__()}
        kind = stored.get("kind")
        if kind not in rules:
            raise InputError(
                f"there is no threshold of kind {kind!r}: it is one of {', '.join(rules)}"
            )
        rule = rules[kind](**stored["parameters"])
        for name, value in stored["fitted"].items():
            setattr(rule, name, np.asarray(value) if isinstance(value, list) else value)
        return rule


class FixedThreshold(Threshold):
    """Positive where the score is at least `value`."""

    kind = "fixed"
    _parameter_constraints: ClassVar = {"value": [Interval(Real, 0, 1, closed="both")]}

    def __init__(self, value: float = 0.5) -> None:
        self.value = value

    def apply(self, Y_score: Any) -> np.ndarray:
        return (np.asarray(Y_score) >= self.value).astype(np.int8)


class TopK(Threshold):
    """The `k` best labels of each row."""

    kind = "top-k"
    _parameter_constraints: ClassVar = {"k": [Interval(Integral, 1, None, closed="left")]}

    def __init__(self, k: int = 1) -> None:
        self.k = k

    def apply(self, Y_score: Any) -> np.ndarray:
        scores = np.asarray(Y_score)
        chosen = np.zeros(scores.shape, dtype=np.int8)
        # A stable sort: of equal scores the label that comes first wins.
        best = np.argsort(-scores, axis=1, kind="stable")[:, : self.k]
        np.put_along_axis(chosen, best, 1, axis=1)
        return chosen


def make_threshold(spec: float | str | Threshold) -> Threshold:
    """The rule that a spec asks for, unfitted and shared with nobody.

    >>> make_threshold(0.4)
    FixedThreshold(value=0.4)
    >>> make_threshold("top-3")
    TopK(k=3)
    """
    if isinstance(spec, Threshold):
        return clone(spec)
    if isinstance(spec, Real) and not isinstance(spec, bool):
        return FixedThreshold(float(spec))
    if isinstance(spec, str) and spec.startswith("top-") and spec[4:].isdigit():
        return TopK(int(spec[4:]))
    raise InputError(f"threshold {spec!r} is none of: a number from 0 to 1, 'top-3'")

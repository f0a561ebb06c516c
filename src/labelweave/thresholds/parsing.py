"""Threshold rules from the short texts that :mod:`labelweave.thresholds` lists."""

from __future__ import annotations

from numbers import Real

import numpy as np
from sklearn.base import clone

from labelweave.exceptions import InputError
from labelweave.thresholds.promised_threshold import PromisedThreshold
from labelweave.thresholds.threshold_rules import (
    CardinalityThreshold,
    FixedThreshold,
    LargestDrop,
    PerLabelThreshold,
    Threshold,
    TopK,
    TunedThreshold,
)
from labelweave.thresholds.threshold_search import label_set_metric

__all__ = ["PAPER_GRID", "make_threshold"]

PAPER_GRID = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The thresholds that most papers choose among."""

_SPECS = (
    "a number from 0 to 1, 'tuned', 'tuned:<metric>', 'tuned:<metric>:grid', 'per-label', "
    "'top-<k>', 'largest-drop', 'cardinality', 'cardinality:labels', "
    "'cardinality:<labels per row>', 'recall>=<bound>', 'precision>=<bound>', 'fdr<=<bound>'"
)


def make_threshold(spec: float | str | Threshold) -> Threshold:
    """Return a new, unfitted rule for a number, a short text or another rule.

    >>> make_threshold(0.4)
    FixedThreshold(value=0.4)
    >>> make_threshold("tuned:f1_micro")
    TunedThreshold(metric='f1_micro')
    >>> make_threshold("top-3")
    TopK(k=3)
    >>> make_threshold("recall>=0.9")
    PromisedThreshold(bound=0.9, measure='recall')
    """
    if isinstance(spec, Threshold):
        return clone(spec)
    rule = None
    if isinstance(spec, Real) and not isinstance(spec, bool) and 0 <= spec <= 1:
        rule = FixedThreshold(float(spec))
    elif isinstance(spec, str):
        rule = _parse(*spec.split(":"))
    if rule is None:
        raise InputError(f"there is no threshold {spec!r}: it is one of {_SPECS}")
    return rule


def _parse(kind: str, *options: str) -> Threshold | None:
    if kind == "tuned" and len(options) <= 2 and options[1:] in ((), ("grid",)):
        metric = label_set_metric(options[0]).name if options else "f1_example"
        return TunedThreshold(metric, PAPER_GRID if options[1:] else None)
    if kind == "cardinality" and len(options) <= 1:
        if options in ((), ("model",), ("labels",)):
            return CardinalityThreshold(*options)
        number = _number(options[0])
        return None if number is None else CardinalityThreshold(number)
    if "=" in kind:
        return _promise(kind, *options)
    if options:
        return None
    if kind == "per-label":
        return PerLabelThreshold()
    if kind == "largest-drop":
        return LargestDrop()
    if kind.startswith("top-") and kind[4:].isdecimal() and int(kind[4:]):
        return TopK(int(kind[4:]))
    number = _number(kind)
    return None if number is None or number > 1 else FixedThreshold(number)


def _promise(text: str, *options: str) -> Threshold | None:
    """Parse `recall>=0.9`, with `per-label` and a confidence in any order behind it."""
    sign = "<=" if text.startswith("fdr") else ">="
    measure, found, bound = (part.strip() for part in text.partition(sign))
    others = [one for one in options if one != "per-label"]
    numbers = [_number(one) or 0 for one in (bound, *others)]
    if measure not in ("recall", "precision", "fdr") or not found or len(numbers) > 2:
        return None
    if not all(0 < number < 1 for number in numbers):
        return None
    rule = PromisedThreshold(measure, numbers[0], per_label="per-label" in options)
    return rule.set_params(confidence=numbers[1]) if others else rule


def _number(text: str) -> float | None:
    """Return the number in a text; None if it is none, not finite or negative."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < np.inf else None

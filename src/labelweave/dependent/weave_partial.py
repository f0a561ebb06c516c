"""Partial labels in :class:`~labelweave.dependent.weave.Weave`: what blanks are taken for."""

from __future__ import annotations

import time
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit

from labelweave.dependent.weave_members import Member, fit_clone
from labelweave.labels import LabelMatrix
from labelweave.metrics import get_metric
from labelweave.missing_positives import missing_share
from labelweave.threads import bounded_threads

__all__ = [
    "Blanks",
    "about_blanks",
    "bias_for_missing_positives",
    "fit_alone",
    "meaning_of_blanks",
]

Blanks = Literal["none", "ignored", "unannotated"]
_MIN_NEGATIVES = 0.5  # checked negatives per positive that are enough to learn from
_LARGEST_BIAS = 30.0


def meaning_of_blanks(Y: LabelMatrix) -> Blanks:
    """What the blank entries are taken for.

    Blanks are ignored if there are enough checked negatives (zeros) to learn from. If hardly any
    negative was checked, only positives were annotated: then blanks are negatives except for
    positives that were missed.

    >>> from labelweave.labels import as_labels
    >>> nan = np.nan
    >>> meaning_of_blanks(as_labels(np.array([[1.0, 0.0], [nan, 0.0]])))
    'ignored'
    >>> meaning_of_blanks(as_labels(np.array([[1.0, nan], [nan, 1.0]])))
    'unannotated'
    """
    if not Y.has_unknown:
        return "none"
    positives, known = (int(count.sum()) for count in Y.counts())
    negatives = known - positives
    is_enough = negatives > 0 and negatives >= _MIN_NEGATIVES * positives
    return "ignored" if is_enough else "unannotated"


def about_blanks(Y: LabelMatrix, blanks: Blanks) -> str:
    """One sentence for the user; empty if no entry is blank."""
    if blanks == "none":
        return ""
    positives, known = (int(count.sum()) for count in Y.counts())
    if blanks == "ignored":
        return (
            f"the {Y.n_unknown:,} blank entries are ignored: the {known - positives:,} checked "
            "negatives are enough to learn from"
        )
    return (
        f"the {Y.n_unknown:,} blank entries are taken for unannotated ones, among which positives "
        f"are missing: only {known - positives:,} negatives were checked beside {positives:,} "
        "positives"
    )


def fit_alone(
    member: Member, X: Any, Y: LabelMatrix, seed: int, predicted_seconds: float
) -> tuple[Any, np.ndarray, Any]:
    """Fit the only member; the model, its out-of-fold probabilities and the table of members."""
    import pandas as pd

    started = time.monotonic()
    with bounded_threads(1):
        model = fit_clone(member.estimator, X, Y, seed)
    labels, probabilities = model.held_out_predictions(None)
    row = {
        "method": member.name,
        "map": get_metric("map")(labels, Y_score=probabilities),
        "weight": 1.0,
        "seconds": time.monotonic() - started,
        "predicted_seconds": predicted_seconds,
        "note": "",
    }
    return model, probabilities, pd.DataFrame([row])


def bias_for_missing_positives(odds: np.ndarray, codes: np.ndarray) -> float:
    """What to add to log-odds so that they expect the missing positives as well.

    Parameters
    ----------
    odds : ndarray of shape (n, L)
        Out-of-fold log-odds of models that took unannotated entries for negatives.
    codes : ndarray of shape (n, L)
        1 positive, -1 checked negative, 0 unannotated (:mod:`labelweave.unannotated`).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.random((20_000, 1)) < 0.2
    >>> codes = (truth & (rng.random(truth.shape) < 0.5)).astype(float)
    >>> odds = rng.normal(8.0 * truth - 4.0)
    >>> bias = bias_for_missing_positives(odds - 3, codes)
    >>> bool(abs(expit(odds - 3 + bias).mean() - 0.2) < 0.02)
    True
    """
    positive, unannotated = odds[codes == 1], odds[codes == 0]
    if not len(positive) or not len(unannotated):
        return 0.0
    n_missing = missing_share(positive, unannotated) * len(unannotated)
    used = np.concatenate([positive, unannotated]).astype(np.float64)
    expected = min((len(positive) + n_missing) / len(used), 1 - 1e-6)

    def excess(bias: float) -> Any:
        return expit(used + bias).mean() - expected

    if excess(-_LARGEST_BIAS) >= 0 or excess(_LARGEST_BIAS) <= 0:
        return 0.0
    return float(brentq(excess, -_LARGEST_BIAS, _LARGEST_BIAS, xtol=1e-6))

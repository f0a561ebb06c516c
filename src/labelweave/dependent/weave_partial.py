"""Partial labels in :class:`~labelweave.dependent.weave.Weave`: what blanks are taken for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import brentq
from scipy.special import expit

from labelweave.capabilities import capabilities
from labelweave.dependent.weave_costs import DataSize, seconds_per_fit
from labelweave.dependent.weave_members import Member
from labelweave.dependent.weave_stacking import LOGIT_EPS, Stack
from labelweave.dependent.weave_trials import fit_in_one_thread, seed_of
from labelweave.input_checks import is_mostly_zero
from labelweave.labels import LabelMatrix
from labelweave.methods import make
from labelweave.metrics import get_metric
from labelweave.missing_positives import missing_share
from labelweave.probabilities import log_odds
from labelweave.progress import ProgressBar
from labelweave.tables.table import Table
from labelweave.unannotated import as_observed, assume_negative

__all__ = [
    "Blanks",
    "about_blanks",
    "MeanProbability",
    "bias_for_missing_positives",
    "fit_partial",
    "meaning_of_blanks",
    "members_for_partial_labels",
    "with_missing_positives",
]

Blanks = Literal["none", "ignored", "unannotated"]
_MIN_NEGATIVES = 0.5  # checked negatives per positive, if most entries are known,
_MANY_NEGATIVES = 2.0  # or if few are: enough to learn from them alone
_FOLDS = 3  # of EM-forest
_LARGEST_BIAS = 30.0


def meaning_of_blanks(Y: LabelMatrix) -> Blanks:
    """What the blank entries are taken for.

    Blanks are ignored if there are enough checked negatives (zeros) to learn from: half as many as
    positives if most entries are known, and twice as many otherwise. With fewer, only positives
    were annotated, and perhaps some suspected entries were checked: then blanks are negatives
    except for positives that were missed.

    >>> from labelweave.labels import as_labels
    >>> nan = np.nan
    >>> meaning_of_blanks(as_labels(np.array([[1.0, 0.0], [nan, 1.0]])))
    'ignored'
    >>> meaning_of_blanks(as_labels(np.array([[1.0, nan], [nan, 1.0]])))
    'unannotated'
    """
    if not Y.has_unknown:
        return "none"
    positives, negatives, blanks = _entries(Y)
    most_are_known = blanks <= positives + negatives
    needed = (_MIN_NEGATIVES if most_are_known else _MANY_NEGATIVES) * positives
    is_enough = negatives > 0 and negatives >= needed
    return "ignored" if is_enough else "unannotated"


def _entries(Y: LabelMatrix) -> tuple[int, int, int]:
    """Numbers of positive, negative and blank entries, without labels that are only negative."""
    positives, known = Y.counts()
    counted = (positives > 0) | (known < len(Y))  # the others do not tell how they were annotated
    n_positive, n_known = int(positives[counted].sum()), int(known[counted].sum())
    return n_positive, n_known - n_positive, int(counted.sum()) * len(Y) - n_known


def about_blanks(Y: LabelMatrix, blanks: Blanks) -> str:
    """One sentence for the user; empty if no entry is blank."""
    if blanks == "none":
        return ""
    positives, negatives, n_blank = _entries(Y)
    if blanks == "ignored":
        return (
            f"the {n_blank:,} blank entries are ignored: the {negatives:,} checked negatives are "
            "enough to learn from"
        )
    return (
        f"the {n_blank:,} blank entries are taken for unannotated ones, among which positives are "
        f"missing: only {negatives:,} negatives were checked beside {positives:,} positives"
    )


def members_for_partial_labels(X: Any, size: DataSize, limit: float, n_trees: int) -> list[Member]:
    """The members for labels of which positives are missing; none if they would take too long.

    The first accounts for missing positives: EM-forest, or CLS+ if EM-forest would take longer than
    `limit`. The others take blanks for negatives; they are cheap and err in other ways. Trees that
    do so are of use on dense features only.

    Parameters
    ----------
    X : features
    size : DataSize
    limit : float
        Predicted seconds on one core.
    n_trees : int
        Trees of a forest.
    """
    able = [
        Member("em-forest", make("em-forest", unannotated="unknown", n_folds=_FOLDS), False),
        Member("cls+", make("cls+", unannotated="unknown"), False),
    ]
    others = [Member("ls-svm", make("ls-svm"), False)]
    if isinstance(X, Table) or not is_mostly_zero(X):
        trees = make("extra-trees", n_estimators=n_trees)
        others.append(Member("extra-trees", trees, False))
    members: list[Member] = []
    for member in [*able, *others]:
        seconds = seconds_per_fit(member, size) or 0.0
        if (not members or member in others) and seconds <= limit:
            members.append(member)
            limit -= seconds
    return members if members and members[0] in able else []


@dataclass(frozen=True)
class MeanProbability:
    """The mean of the members' probabilities, after a shift of the log-odds of each.

    A member that takes blanks for negatives predicts how probable it is that a label is annotated.
    Where that is small it is c P(label), if each positive is annotated with probability c: its
    log-odds are too low by log c.
    """

    shift: np.ndarray

    def __call__(self, odds: np.ndarray) -> np.ndarray:
        """Probabilities of shape (n, L), from log-odds of shape (members, n, L)."""
        return expit(odds + self.shift[:, None, None]).mean(axis=0)


@dataclass(frozen=True)
class PartialFit:
    """Fitted members, how they are combined, held-out labels and probabilities, and a table."""

    models: list[list[Any]]
    layer: MeanProbability
    held_out: tuple[LabelMatrix, np.ndarray]
    table: Any


def fit_partial(
    members: list[Member],
    X: Any,
    Y: LabelMatrix,
    size: DataSize,
    seed: int,
    *,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> PartialFit:
    """Fit :func:`members_for_partial_labels` to all rows.

    All members count alike: labels with missing positives cannot judge them. The held-out
    predictions are those of the first member, which holds rows out itself.
    """
    import pandas as pd

    assumed = assume_negative(as_observed(Y, "unknown"))
    sees_blanks = [capabilities(member.estimator).partial_labels for member in members]
    tasks = (
        delayed(_fit_member)(
            member.estimator, X, Y if sees else assumed, seed_of(seed, k, 0, 0), holds_out=k == 0
        )
        for k, (member, sees) in enumerate(zip(members, sees_blanks, strict=True))
    )
    expected = [seconds_per_fit(member, size) or 1.0 for member in members]
    models, seconds, held_out = [], [], None
    with ProgressBar("weaving", sum(expected), verbose=verbose) as bar:
        results = Parallel(n_jobs=n_jobs, return_as="generator", pre_dispatch="n_jobs")(tasks)
        for member, cost, result in zip(members, expected, results, strict=True):
            models.append([result[0]])
            seconds.append(result[1])
            held_out = held_out or result[2]
            bar.advance(cost, member.name)
    assert held_out is not None
    labels, probabilities = held_out
    rate = _annotation_rate(labels.to_numpy(), probabilities)
    layer = MeanProbability(np.where(sees_blanks, 0.0, -np.log(rate)))
    table = pd.DataFrame(
        {
            "method": [member.name for member in members],
            "map": np.nan,
            "weight": 1 / len(members),
            "seconds": seconds,
            "predicted_seconds": expected,
            "note": ["" if sees else "took blanks for negatives" for sees in sees_blanks],
        }
    )
    table.loc[0, "map"] = get_metric("map")(labels, Y_score=probabilities)
    return PartialFit(models, layer, (labels, probabilities), table)


def _fit_member(
    estimator: Any, X: Any, Y: LabelMatrix, seed: int, *, holds_out: bool
) -> tuple[Any, float, tuple[LabelMatrix, np.ndarray] | None]:
    """A fitted copy, its seconds, and its held-out predictions, which are not pickled with it."""
    model, seconds = fit_in_one_thread(estimator, X, Y, seed, None)
    return model, seconds, model.held_out_predictions(None) if holds_out else None


def _annotation_rate(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """Estimated share of the positives that are annotated; 1 if none is missing."""
    positive, others = probabilities[labels == 1], probabilities[labels == 0]
    n_missing = missing_share(positive, others) * len(others)
    return len(positive) / (len(positive) + n_missing) if len(positive) else 1.0


def with_missing_positives(stack: Stack, codes: np.ndarray) -> Stack:
    """The stack with log-odds that are raised by :func:`bias_for_missing_positives`."""
    odds = log_odds(stack.held_out, LOGIT_EPS)
    bias = bias_for_missing_positives(odds, codes)
    layer = replace(stack.layer, bias=stack.layer.bias + bias)
    return Stack(layer, stack.form, expit(odds + bias))


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

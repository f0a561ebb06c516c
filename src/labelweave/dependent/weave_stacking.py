"""Stacking: the probabilities of several models for the same rows are combined into one.

The members' log-odds are combined by a weighted sum (:func:`choose_members`). A small second layer
(:func:`fit_second_layer`) may adjust the weights per label and use the log-odds of the other
labels; or each member is calibrated per label first (:func:`calibrated_mean`). Everything here
must be fitted to out-of-fold probabilities.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import expit, logit

from labelweave.calibration import LabelCalibrator
from labelweave.metrics import get_metric, sweep_f1
from labelweave.probabilities import log_odds

__all__ = [
    "FORMS",
    "LOGIT_EPS",
    "MAX_WEIGHT_ENTRIES",
    "Form",
    "SecondLayer",
    "Stack",
    "best_layer",
    "calibrated_mean",
    "choose_members",
    "fit_second_layer",
    "mean_entropy",
    "sample_rows",
    "weighted_mean",
    "weights_of",
]

N_ROUNDS = 24  # of forward selection, so that shares are multiples of 1/24
LOGIT_EPS = 1e-4  # log-odds are at most 9.2: larger values are no stronger evidence
_LARGEST = float(logit(1 - LOGIT_EPS))
_BIAS_PENALTY = 0.1
_MAX_ITERATIONS = 100
Weights = np.ndarray | None  # of the rows
Form = float | Literal["mean", "calibrated", "partial"]
FORMS: tuple[Form, ...] = ("mean", "calibrated", 1000.0, 100.0, 10.0, 1.0)
"""Forms of the second layer: common weights, calibrated members, or a fit with this penalty."""
N_DIRECTIONS = 32
MAX_WEIGHT_ENTRIES = 1_000_000  # rows x labels, for the weights of the members
_THRESHOLDS = np.linspace(0.05, 0.95, 19)
_FEW_POSITIVES = 100  # per label: with fewer, the forms with small penalties over-fit
_SMALL_PENALTY = 10.0


def mean_entropy(odds: np.ndarray, targets: np.ndarray, row_weight: Weights = None) -> float:
    """Mean cross-entropy of log-odds over the known entries, weighted by the weights of rows."""
    entries = np.logaddexp(0, odds) - odds * np.nan_to_num(targets)
    known = ~np.isnan(targets)
    if row_weight is None:
        return float(entries[known].mean())
    return float(np.average(entries, weights=known * row_weight[:, None]))


def choose_members(
    odds: np.ndarray, targets: np.ndarray, row_weight: Weights = None, *, seed: int = 0
) -> np.ndarray:
    """Weights of members, by forward selection with replacement [1]_.

    Each member's log-odds are first multiplied by the factor that minimises their cross-entropy;
    otherwise an uninformative member could be selected because it dampens an overconfident one.
    Then each round adds the member with which the mean has the least cross-entropy. The weight of
    a member is its factor times its share of the rounds; 0 if it is never added.

    Parameters
    ----------
    odds : ndarray of shape (members, n, L)
    targets : ndarray of shape (n, L)
        1, 0 or NaN for unknown.
    row_weight : ndarray of shape (n,), optional
        How much each row counts in the cross-entropy.
    seed : int, default=0
        Seed of the sample of rows that is used if there are more than a million entries.

    Returns
    -------
    ndarray of shape (members,)

    References
    ----------
    .. [1] R. Caruana, A. Niculescu-Mizil, G. Crew and A. Ksikes. Ensemble selection from
       libraries of models. ICML 2004.

    Examples
    --------
    >>> targets = np.array([[1.0], [0.0]])
    >>> good, bad = np.array([[2.0], [-2.0]]), np.array([[-2.0], [2.0]])
    >>> good[0] = -1.0  # wrong once
    >>> choose_members(np.stack([good, bad]), targets).round(2)
    array([0.42, 0.  ])
    """
    rows = sample_rows(targets, MAX_WEIGHT_ENTRIES, seed)
    odds, targets, row_weight = odds[:, rows], targets[rows], weights_of(row_weight, rows)
    factors = np.array([_best_factor(member, targets, row_weight) for member in odds])
    counts = np.zeros(len(odds))
    total = np.zeros(odds.shape[1:], dtype=np.float64)
    for number in range(1, N_ROUNDS + 1):
        entropies = [
            mean_entropy((total + factor * member) / number, targets, row_weight)
            for factor, member in zip(factors, odds, strict=True)
        ]
        best = int(np.argmin(entropies))
        counts[best] += 1
        total += factors[best] * odds[best]
    return factors * counts / N_ROUNDS


def sample_rows(targets: np.ndarray, entries: int, seed: int) -> Any:
    """A random sample of rows with this number of entries, or all rows."""
    if targets.size <= entries:
        return slice(None)
    order = np.random.RandomState(seed).permutation(len(targets))
    return order[: max(entries // targets.shape[1], 1)]


def weights_of(row_weight: Weights, rows: Any) -> Weights:
    """The weights of some of the rows; None if there are no weights."""
    return None if row_weight is None else row_weight[rows]


def _best_factor(odds: np.ndarray, targets: np.ndarray, row_weight: Weights) -> float:
    def entropy(factor: float) -> float:
        return mean_entropy(factor * odds, targets, row_weight)

    return float(minimize_scalar(entropy, bounds=(0, 4), method="bounded").x)


@dataclass(frozen=True)
class SecondLayer:
    """Log-odds of the members to probabilities.

    ``s[n, l] = sum_m weights[m, l] odds[m, n, l] + bias[l] + sum_r cross[l, r] u[n, r]``, where
    ``u = (mean odds - centre) basis`` are the principal directions of the labels' log-odds,
    combined with the members' common weights.
    """

    weights: np.ndarray
    bias: np.ndarray
    cross: np.ndarray
    common: np.ndarray
    centre: np.ndarray
    basis: np.ndarray

    def __call__(self, odds: np.ndarray) -> np.ndarray:
        """Probabilities of shape (n, L), from log-odds of shape (members, n, L)."""
        return expit(_score(self.weights, self.bias, self.cross, odds, self._directions(odds)))

    def _directions(self, odds: np.ndarray) -> np.ndarray:
        return (np.tensordot(self.common, odds, 1) - self.centre) @ self.basis


def weighted_mean(common: np.ndarray, n_labels: int) -> SecondLayer:
    """The layer that combines the members with their common weights."""
    return SecondLayer(
        np.repeat(common[:, None], n_labels, axis=1),
        np.zeros(n_labels),
        np.zeros((n_labels, 0)),
        common,
        np.zeros(n_labels),
        np.zeros((n_labels, 0)),
    )


def calibrated_mean(odds: np.ndarray, targets: np.ndarray) -> SecondLayer:
    """The layer that calibrates each label of each member by Platt's sigmoid before combining.

    Parameters
    ----------
    odds, targets
        As in :func:`choose_members`.
    """
    fits = [LabelCalibrator().fit(targets, expit(member.astype(np.float64))) for member in odds]
    slopes = np.array([fit.slope_ for fit in fits])
    offsets = np.array([fit.offset_ for fit in fits])
    calibrated = odds * slopes[:, None] + offsets[:, None]
    common = choose_members(np.clip(calibrated, -_LARGEST, _LARGEST), targets)
    mean = weighted_mean(common, targets.shape[1])
    return replace(mean, weights=common[:, None] * slopes, bias=common @ offsets)


def fit_second_layer(
    odds: np.ndarray,
    targets: np.ndarray,
    common: np.ndarray,
    row_weight: Weights = None,
    *,
    penalty: float,
    n_directions: int,
    max_steps: int = _MAX_ITERATIONS,
) -> SecondLayer:
    """Fit the layer by cross-entropy plus ``penalty / 2`` times the squared changes.

    The changes are the differences of a label's weights from the common weights, and its weights
    of the directions. So labels with few rows stay close to the common weights.

    Parameters
    ----------
    odds : ndarray of shape (members, n, L)
    targets : ndarray of shape (n, L)
        1, 0 or NaN for unknown.
    common : ndarray of shape (members,)
        From :func:`choose_members`.
    row_weight : ndarray of shape (n,), optional
        How much each row counts in the cross-entropy; only the ratios matter.
    penalty : float
    n_directions : int
        Number of directions; at most the number of labels.
    max_steps : int, default=100
        Largest number of steps of the optimiser.

    Examples
    --------
    >>> targets = np.tile([[1.0, 1.0], [0.0, 0.0]], (50, 1))
    >>> odds = np.zeros((1, 100, 2))  # the second label has no evidence,
    >>> odds[0, :, 0] = 4 * targets[:, 0] - 2  # but always occurs with the first
    >>> layer = fit_second_layer(odds, targets, np.ones(1), penalty=1.0, n_directions=2)
    >>> bool(layer(odds)[0, 1] > 0.9)
    True
    """
    n_members, _, n_labels = odds.shape
    combined = np.tensordot(common, odds, 1)
    centre = combined.mean(axis=0)
    basis = _main_directions(combined - centre, n_directions)
    directions = (combined - centre) @ basis
    known = (~np.isnan(targets)).astype(np.float64)
    if row_weight is not None:
        known *= (row_weight / row_weight.mean())[:, None]
    positive = np.nan_to_num(targets)
    shapes = [(n_members, n_labels), (n_labels,), (n_labels, basis.shape[1])]
    ends = np.cumsum([np.prod(shape) for shape in shapes])[:-1]

    def unpacked(flat: np.ndarray) -> list[np.ndarray]:
        parts = np.split(flat, ends)
        return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]

    def objective(flat: np.ndarray) -> tuple[float, np.ndarray]:
        change, bias, cross = unpacked(flat)
        score = _score(common[:, None] + change, bias, cross, odds, directions)
        entropy = ((np.logaddexp(0, score) - score * positive) * known).sum()
        slope = (expit(score) - positive) * known
        gradient = [
            np.einsum("mnl,nl->ml", odds, slope) + penalty * change,
            slope.sum(axis=0) + _BIAS_PENALTY * bias,
            slope.T @ directions + penalty * cross,
        ]
        cost = 0.5 * penalty * ((change**2).sum() + (cross**2).sum())
        cost += 0.5 * _BIAS_PENALTY * (bias**2).sum()
        return float(entropy + cost), np.concatenate([part.ravel() for part in gradient])

    start = np.zeros(int(sum(np.prod(shape) for shape in shapes)))
    result = minimize(objective, start, jac=True, method="L-BFGS-B", options={"maxiter": max_steps})
    change, bias, cross = unpacked(result.x)
    return SecondLayer(common[:, None] + change, bias, cross, common, centre, basis)


@dataclass(frozen=True)
class Stack:
    """A layer, its form (one of :data:`FORMS`), and its out-of-fold probabilities."""

    layer: SecondLayer
    form: Form
    held_out: np.ndarray


def best_layer(
    odds: np.ndarray,
    targets: np.ndarray,
    common: np.ndarray,
    seed: int,
    row_weight: Weights = None,
    *,
    seconds: float = np.inf,
    max_entries: int = 4_000_000,
) -> Stack:
    """The form of the layer that is best out of fold, fitted to all rows.

    The weighted mean is kept unless another form is better out of fold both in cross-entropy and in
    the mean of mAP and F1; small penalties are tried only if there are enough positives per label.

    Parameters
    ----------
    odds, targets, common
        As in :func:`fit_second_layer`.
    seed : int
        Seed of the folds.
    row_weight : ndarray of shape (n,), optional
        How much each row counts in the cross-entropy. With weights, the form with the least
        cross-entropy is taken, and calibrated members are not tried.
    seconds : float, default=inf
        Time limit: forms that would take longer are not tried, except the weighted mean.
    max_entries : int, default=4_000_000
        With more rows x labels, layers are chosen on and fitted to a sample of the rows.
    """
    ends = time.monotonic() + seconds
    rows = sample_rows(targets, max_entries, seed)
    sampled_odds, sampled = odds[:, rows], targets[rows]
    sampled_weight = weights_of(row_weight, rows)
    cost = _seconds_per_form(sampled_odds, sampled, common) if np.isfinite(seconds) else 0.0
    per_label = np.nansum(sampled) / sampled.shape[1]
    quality: dict[Form, float] = {}
    entropy: dict[Form, float] = {}
    for form in FORMS:
        is_late = time.monotonic() + 2.5 * cost >= ends
        has_no_weights = form == "calibrated" and row_weight is not None
        if form != "mean" and (is_late or has_no_weights or _over_fits(form, per_label)):
            continue
        probabilities = _out_of_fold(sampled_odds, sampled, common, form, seed, sampled_weight)
        entropy[form] = mean_entropy(log_odds(probabilities, LOGIT_EPS), sampled, sampled_weight)
        if entropy[form] <= entropy["mean"]:
            is_weighted = row_weight is not None
            quality[form] = -entropy[form] if is_weighted else _quality(sampled, probabilities)
    form = max(quality, key=lambda tried: quality[tried])
    layer = _layer(sampled_odds, sampled, common, form, sampled_weight)
    held_out = _out_of_fold(odds, targets, common, form, seed, row_weight, max_entries)
    return Stack(layer, form, held_out)


def _over_fits(form: Form, per_label: float) -> bool:
    """Whether the form has too many free parameters for so few positives per label."""
    return per_label < _FEW_POSITIVES and isinstance(form, float) and form <= _SMALL_PENALTY


def _seconds_per_form(odds: np.ndarray, targets: np.ndarray, common: np.ndarray) -> float:
    """Upper bound of the time of three fits to two thirds of the rows, from one step."""
    started = time.monotonic()
    fit_second_layer(odds, targets, common, penalty=1.0, n_directions=N_DIRECTIONS, max_steps=1)
    return (time.monotonic() - started) * _MAX_ITERATIONS


def _layer(
    odds: np.ndarray, targets: np.ndarray, common: np.ndarray, form: Form, row_weight: Weights
) -> SecondLayer:
    if form == "mean":
        return weighted_mean(common, targets.shape[1])
    if form == "calibrated":
        return calibrated_mean(odds, targets)
    how: dict[str, Any] = {"penalty": float(form), "n_directions": N_DIRECTIONS}
    return fit_second_layer(odds, targets, common, row_weight, **how)


def _out_of_fold(
    odds: np.ndarray,
    targets: np.ndarray,
    common: np.ndarray,
    form: Form,
    seed: int,
    row_weight: Weights,
    max_entries: int | None = None,
) -> np.ndarray:
    """Probabilities of the rows, each third by a layer fitted to (a sample of) the other two."""
    if form == "mean":
        return weighted_mean(common, targets.shape[1])(odds)
    third = np.random.RandomState(seed).permutation(len(targets)) % 3
    probabilities = np.empty(targets.shape)
    for number in range(3):
        test, train = third == number, np.flatnonzero(third != number)
        if max_entries is not None:
            train = train[sample_rows(targets[train], max_entries, seed)]
        weight = weights_of(row_weight, train)
        layer = _layer(odds[:, train], targets[train], common, form, weight)
        probabilities[test] = layer(odds[:, test])
    return probabilities


def _quality(targets: np.ndarray, probabilities: np.ndarray) -> float:
    """Mean of mAP and of example, micro and macro F1, each at its best threshold."""
    f1 = [
        np.nanmax(sweep_f1(targets, probabilities, _THRESHOLDS, average=average))
        for average in ("example", "micro", "macro")
    ]
    return float(np.nanmean([*f1, get_metric("map")(targets, Y_score=probabilities)]))


def _score(
    weights: np.ndarray,
    bias: np.ndarray,
    cross: np.ndarray,
    odds: np.ndarray,
    directions: np.ndarray,
) -> np.ndarray:
    return np.einsum("ml,mnl->nl", weights, odds) + bias + directions @ cross.T


def _main_directions(centred: np.ndarray, number: int) -> np.ndarray:
    """Directions of largest variance, scaled so that the rows vary by 1 along each."""
    variances, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    order = np.argsort(variances)[::-1][:number]
    kept = order[variances[order] > 1e-6 * max(variances[order[0]], 1e-12)]
    return vectors[:, kept] / np.sqrt(variances[kept])

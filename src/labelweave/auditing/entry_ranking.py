"""Which unannotated entries are positive? From labels and out-of-fold scores to probabilities.

The score of an entry uses the features of its row. More evidence lies in the other labels that the
row is known to have, in the number of labels annotated in the row, and in the predictions of
methods of another kind. The evidence is combined in two steps, each fitted on other rows than it
is applied to:

1. A ridge regression of each label on all *other* known labels of the row and on all scores
   (:mod:`labelweave.shallow.label_regression`). If the rows have numeric features, a second
   regression on these and the votes of near rows (:mod:`labelweave.auditing.feature_estimates`).
2. Gradient-boosted trees and a logistic regression over the entries of all labels together. Their
   inputs are the score, the estimates of step 1, co-occurrence, frequency and ranks; their target
   is whether the entry is annotated as positive. This makes entries of different labels comparable.

If annotators miss positives at random, the probability g that an entry is annotated is c times the
probability that it is positive, where c is the share of positives that are annotated. An
unannotated entry is then positive with probability ``(1 - c) / c * g / (1 - g)``. c is estimated as
in :mod:`labelweave.missing_positives`; it changes the probabilities but not the order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit
from scipy.stats import rankdata

from labelweave.auditing.feature_estimates import feature_estimates
from labelweave.data.splits import as_generator, stratified_folds
from labelweave.labels import LabelMatrix
from labelweave.missing_positives import missing_share
from labelweave.probabilities import log_odds
from labelweave.shallow.label_regression import label_regression

__all__ = ["Candidates", "ChosenEntries", "choose_entries", "rank_entries"]

_PROBABILITY_EPSILON = 1e-6
_SCORE_EPSILON = 1e-4
_LEAST_SHARE = 0.003  # added to shares before their logarithm
_SMOOTHING = 5.0  # rows with the label's own frequency, added to each co-occurrence
_CANDIDATES_PER_POSITIVE = 4
_FEWEST_CANDIDATES = 1000
_MOST_TRAINED = 120_000
_FOLDS = 5


class Candidates(NamedTuple):
    """The entries that were ranked, and the probabilities of each.

    `annotated` is the probability g that such an entry is annotated as positive; `missing` is the
    probability that an unannotated entry is positive, NaN for all other entries;
    `annotated_share` is the estimated share c of the positives that are annotated.
    """

    rows: np.ndarray
    columns: np.ndarray
    annotated: np.ndarray
    missing: np.ndarray
    annotated_share: float


class ChosenEntries(NamedTuple):
    """The entries of the list, in order; `score` is the probability that each is an error."""

    rows: np.ndarray
    columns: np.ndarray
    annotated: np.ndarray
    score: np.ndarray


def rank_entries(
    observed: LabelMatrix,
    scores: np.ndarray,
    *,
    X: Any = None,
    reviewed: np.ndarray | None = None,
    n_wanted: int = 0,
    random_state: object = 0,
) -> Candidates:
    """Estimate probabilities of the likeliest unannotated entries and of all annotated positives.

    * `observed`: Coded by :func:`labelweave.unannotated.as_observed`.
    * `scores`: Probabilities by models that did not see the row.
    * `X`: Features of the rows. Without them only labels and scores are used.
    * `reviewed`: Entries that a reviewer decided. They are evidence for other entries, but they are
      not counted when the share of annotated positives is estimated, since reviewers do not choose
      entries at random.
    * `n_wanted`: The number of unannotated entries that the caller wants to list.
    * `random_state`: Of the folds, of the reduced features and of the entries that the models are
      trained on.
    """
    codes = observed.to_numpy()
    positive, unannotated = codes == 1, codes == 0
    positive_before, unannotated_before = positive, unannotated
    if reviewed is not None and (positive & ~reviewed).any():
        positive_before, unannotated_before = positive & ~reviewed, unannotated | reviewed
    rng = as_generator(random_state)
    logits = log_odds(scores, _SCORE_EPSILON, np.float32)
    fold = stratified_folds(
        positive.astype(np.float32), min(_FOLDS, len(codes)), X=X, random_state=rng
    )
    estimates = [label_regression(positive, logits, fold)]
    likely = _likely_entries(codes, logits, estimates[0], n_wanted)
    entries = np.flatnonzero(likely | positive.ravel())
    if X is not None:
        estimates += feature_estimates(X, positive, fold, seed=int(rng.integers(2**31)))
    rows, columns = np.divmod(entries, codes.shape[1])
    annotated = _annotated_probability(
        _entry_features(positive, logits, estimates, fold, entries),
        positive.ravel()[entries],
        fold[rows],
        likely[entries],
        rng,
    )
    share = _annotated_share(
        annotated,
        unannotated_before.ravel()[entries],
        positive_before.ravel()[entries],
        int(unannotated_before.sum()),
    )
    n_positive = int(positive.sum())
    if n_positive:  # positives that reviewers found are annotated, too
        share = min(share * n_positive / int(positive_before.sum()), 1 - _PROBABILITY_EPSILON)
    odds = annotated / (1 - annotated) * (1 - share) / share if n_positive else annotated
    missing = np.where(unannotated.ravel()[entries], np.clip(odds, 0, 1), np.nan)
    return Candidates(rows, columns, annotated, missing, share)


def choose_entries(
    candidates: Candidates, observed: LabelMatrix, suspects: str, reviewed: np.ndarray, top: int
) -> ChosenEntries:
    """Choose the entries to list, the likeliest errors first.

    * `suspects`: one of {"missing", "wrong"}.
    * `reviewed`: Flat positions of entries that are not listed again.
    * `top`: The largest number of entries.
    """
    rows, columns, annotated, missing, share = candidates
    if suspects == "missing":
        score, order = missing, annotated
        listed = ~np.isnan(missing)
    else:
        # A positive is annotated with probability g = c P(positive).
        score, order = 1 - np.clip(annotated / share, 0, 1), -annotated
        listed = observed.to_numpy()[rows, columns] == 1
    listed &= ~np.isin(rows * observed.n_labels + columns, reviewed)
    positions = np.flatnonzero(listed)
    chosen = positions[np.argsort(-order[positions], kind="stable")[:top]]
    return ChosenEntries(rows[chosen], columns[chosen], annotated[chosen], score[chosen])


def _likely_entries(
    codes: np.ndarray, logits: np.ndarray, regression: np.ndarray, n_wanted: int
) -> np.ndarray:
    """Return a flat mask of the entries with the highest score or regression, annotated or not."""
    usable = ~np.isnan(codes).ravel()
    n_kept = max(
        _CANDIDATES_PER_POSITIVE * int((codes == 1).sum()), 4 * n_wanted, _FEWEST_CANDIDATES
    )
    n_kept = min(n_kept, int(usable.sum()))
    likely = np.zeros(codes.size, dtype=bool)
    for values in (logits, regression):
        flat = np.where(usable, values.ravel(), -np.inf)
        likely[np.argpartition(-flat, n_kept - 1)[:n_kept]] = True
    return likely & usable


def _entry_features(
    positive: np.ndarray,
    logits: np.ndarray,
    estimates: list[np.ndarray],
    fold: np.ndarray,
    entries: np.ndarray,
) -> np.ndarray:
    """Return the inputs of the second step; no column uses the entry's own annotation.

    `estimates` are estimated probabilities that the label is annotated in such a row. Their
    logarithms are taken: this changes nothing for trees, and log probabilities are additive
    evidence in a logistic regression.
    """
    n_rows, n_labels = positive.shape
    rows, columns = np.divmod(entries, n_labels)
    labels = positive.astype(np.float32)
    own_label = labels.ravel()[entries]
    # The entry itself is counted: a frequency without it would reveal its annotation.
    frequency = labels.sum(axis=0)[columns]
    lift, best = _co_occurrence(labels, fold)
    rank_in_row = rankdata(-logits, method="ordinal", axis=1).ravel()[entries]
    rank_in_label = rankdata(-logits, method="ordinal", axis=0).ravel()[entries]
    return np.column_stack(
        [
            logits.ravel()[entries],
            lift.ravel()[entries],
            labels.sum(axis=1)[rows] - own_label,
            np.log((frequency + 0.5) / n_rows),
            np.log(rank_in_row),
            np.log(rank_in_label / (frequency + 1.0)),
            *(
                np.log(np.clip(values.ravel()[entries], 0, 1) + _LEAST_SHARE)
                for values in (best, *estimates)
            ),
        ]
    ).astype(np.float32)


def _co_occurrence(labels: np.ndarray, fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute two statistics of each entry given the other labels that its row is known to have.

    The first is the sum of the log lifts of the label given each of them, the second the highest
    conditional frequency of the label given one of them.
    """
    lift, best = np.zeros_like(labels), np.zeros_like(labels)
    for number in np.unique(fold):
        held_out = fold == number
        rest = ~held_out if (~held_out).any() else held_out
        together = labels[rest].T @ labels[rest]
        count = np.diag(together).copy()
        frequency = (count + 0.5) / (rest.sum() + 1)
        conditional = (together + _SMOOTHING * frequency) / (count[:, None] + _SMOOTHING)
        np.fill_diagonal(conditional, 0)  # a label is no evidence for itself
        log_lift = np.log((conditional + 1e-6) / frequency)
        np.fill_diagonal(log_lift, 0)
        lift[held_out] = labels[held_out] @ log_lift
        best[held_out] = _highest_conditional(labels[held_out], conditional)
    return lift, best


def _highest_conditional(known: np.ndarray, conditional: np.ndarray) -> np.ndarray:
    """Return, for each row, the highest frequency of each label given a label of the row."""
    rows, columns = np.nonzero(known)
    best = np.zeros(known.shape, dtype=np.float32)
    if len(rows):
        starts = np.flatnonzero(np.r_[True, np.diff(rows) > 0])
        # In chunks of rows: every known label needs a line of the table.
        for chunk in np.array_split(np.arange(len(starts)), max(1, len(rows) // 20_000)):
            if len(chunk):
                first = starts[chunk[0]]
                last = starts[chunk[-1] + 1] if chunk[-1] + 1 < len(starts) else len(rows)
                lines = conditional[columns[first:last]].astype(np.float32)
                best[rows[starts[chunk]]] = np.maximum.reduceat(lines, starts[chunk] - first)
    return best


def _annotated_probability(
    features: np.ndarray,
    targets: np.ndarray,
    fold: np.ndarray,
    trainable: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """Estimate the probability that each entry is annotated, with models fitted on other rows.

    Boosted trees and a logistic regression with products need many entries, a plain logistic
    regression few. The model with the lowest out-of-fold log loss is used; the mean of the first
    two is a fourth choice. Only entries chosen by their scores are used for training: all other
    entries here are annotated, and the models would learn this selection.
    """
    seed = int(rng.integers(2**31))
    logits = [
        _out_of_fold_logits(model, features, targets, fold, trainable, rng)
        for model in _models(seed)
    ]
    logits.append(np.mean(logits[:2], axis=0))
    signs = np.where(targets[trainable], 1.0, -1.0)
    losses = [np.logaddexp(0, -signs * values[trainable]).mean() for values in logits]
    probability = expit(logits[int(np.argmin(losses))])
    return np.clip(probability, _PROBABILITY_EPSILON, 1 - _PROBABILITY_EPSILON)


def _models(seed: int) -> tuple[Any, Any, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, StandardScaler

    trees = HistGradientBoostingClassifier(
        max_iter=80,
        max_leaf_nodes=15,
        min_samples_leaf=40,
        l2_regularization=1.0,
        early_stopping=False,
        random_state=seed,
    )
    # With far more entries than columns, Newton's method needs the fewest steps.
    with_products = make_pipeline(
        StandardScaler(),
        PolynomialFeatures(2, include_bias=False),
        StandardScaler(),
        LogisticRegression(C=0.1, solver="newton-cholesky"),
    )
    return trees, with_products, make_pipeline(StandardScaler(), LogisticRegression(max_iter=300))


def _out_of_fold_logits(
    model: Any,
    features: np.ndarray,
    targets: np.ndarray,
    fold: np.ndarray,
    trainable: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    probability = np.full(len(targets), targets.mean())
    for number in np.unique(fold):
        held_out = fold == number
        rest = np.flatnonzero(~held_out & trainable)
        if len(rest) > _MOST_TRAINED:
            rest = rng.choice(rest, _MOST_TRAINED, replace=False)
        if len(np.unique(targets[rest])) == 2:  # otherwise all entries keep the mean
            model.fit(features[rest], targets[rest])
            probability[held_out] = model.predict_proba(features[held_out])[:, 1]
    return log_odds(probability, _PROBABILITY_EPSILON)


def _annotated_share(
    probability: np.ndarray, unannotated: np.ndarray, positive: np.ndarray, n_unannotated: int
) -> float:
    """Estimate the share of the positives that are annotated."""
    n_positive = int(positive.sum())
    if n_positive == 0 or n_unannotated == 0:
        return 1.0
    not_ranked = np.zeros(max(n_unannotated - int(unannotated.sum()), 0))
    alpha = missing_share(
        probability[positive], np.concatenate([probability[unannotated], not_ranked])
    )
    # At least one is taken to be missing: otherwise all entries would have probability 0.
    return float(n_positive / (n_positive + max(alpha * n_unannotated, 1.0)))

"""Which unannotated entries are positive? From labels and out-of-fold scores to probabilities.

A score of a label says how the row looks. The other labels that the row is known to have say
more, and so do how much is annotated in the row at all and what methods of another kind make of
the row's features. All is put together in two steps, each fitted on other rows than it is applied
to:

1. a ridge regression of each label on all *other* known labels of the row and on all scores
   (:mod:`labelweave.shallow.label_regression`); where there are features, a second one on these
   and a vote of near rows (:mod:`labelweave.auditing.views`);
2. boosted trees and a logistic regression with products over entries of all labels together, from
   the score, these opinions, co-occurrence, frequency and ranks, to the chance of being
   *annotated*, which makes entries of different labels comparable.

Where annotators miss positives by chance, the chance g of being annotated is c times that of
being positive, c the share of positives that are annotated. An entry that is not annotated is
positive with probability ``(1 - c) / c * g / (1 - g)``; c is estimated as in
:mod:`labelweave.missing_positives`. It moves the probabilities and not the order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from labelweave.auditing.views import views_of_rows
from labelweave.data.splits import as_generator, stratified_folds
from labelweave.labels import LabelMatrix
from labelweave.missing_positives import missing_share
from labelweave.shallow.label_regression import label_regression

__all__ = ["Candidates", "rank_entries"]

_SUREST = 1e-6
_EDGE = 1e-4  # scores are kept this far from 0 and 1
_LEAST_SHARE = 0.003  # added to shares before their logarithm
_SMOOTHING = 5.0  # rows with the label's own frequency, added to each co-occurrence
_LIKELY = 4  # entries looked at closely, for each annotated positive
_MOST_TRAINED = 120_000
_FOLDS = 5
_MOST_ANNOTATED = 1 - 1e-6


class Candidates(NamedTuple):
    """Entries that were looked at closely, and the chances of each.

    `missing` is the probability that an entry which nobody annotated is positive; `annotated`
    the chance g of an annotated positive in its place; `share` the estimated share c of the
    positives that are annotated.
    """

    rows: np.ndarray
    columns: np.ndarray
    annotated: np.ndarray
    missing: np.ndarray
    share: float


def rank_entries(
    observed: LabelMatrix,
    scores: np.ndarray,
    *,
    X: Any = None,
    reviewed: np.ndarray | None = None,
    n_wanted: int = 0,
    random_state: object = 0,
) -> Candidates:
    """Chances of the likeliest unannotated entries and of all annotated positives.

    Parameters
    ----------
    observed : LabelMatrix
        Coded by :func:`labelweave.unannotated.as_observed`.
    scores : ndarray of shape (n_rows, n_labels)
        Probabilities by models that did not see the row.
    X : ndarray or sparse matrix of shape (n_rows, n_features), optional
        Features of the rows; without them labels and scores are all that is looked at.
    reviewed : boolean ndarray of shape (n_rows, n_labels), optional
        Entries whose annotation is a reviewer's verdict, not chance. What is known of them counts
        for the others; that they stand annotated says nothing about how much is.
    n_wanted : int, default=0
        How many unannotated entries are wanted at least, as far as there are so many.
    random_state : None, int, RandomState or Generator
        Of the folds, of the reduced features and of the entries that are learnt from.

    Returns
    -------
    Candidates
        Both kinds of entries; those with a `missing` of NaN are annotated or known.
    """
    codes = observed.to_numpy()
    positive, is_open = codes == 1, codes == 0
    by_chance, unsaid = _before_review(positive, is_open, reviewed)
    rng = as_generator(random_state)
    kept = np.clip(scores, _EDGE, 1 - _EDGE)
    logits = np.log(kept / (1 - kept)).astype(np.float32)
    n_folds = min(_FOLDS, len(codes))
    fold = stratified_folds(observed_positives(observed), n_folds, random_state=rng)
    regression = label_regression(positive, logits, fold)
    likely = _likely(codes, logits, regression, n_wanted)
    entries = np.flatnonzero(likely | positive.ravel())
    shares = [regression]
    if X is not None:
        shares += views_of_rows(X, positive, fold, seed=int(rng.integers(2**31)))
    features = _features(positive, logits, shares, fold, entries)
    annotated = _chances(
        features,
        positive.ravel()[entries],
        fold[entries // codes.shape[1]],
        likely[entries],
        rng,
    )
    open_here = is_open.ravel()[entries]
    share = _annotated_share(
        annotated, unsaid.ravel()[entries], by_chance.ravel()[entries], int(unsaid.sum())
    )
    n_positive = int(positive.sum())
    if n_positive:  # verdicts add to what is annotated by chance
        share = min(share * n_positive / int(by_chance.sum()), _MOST_ANNOTATED)
    odds = annotated / (1 - annotated) * (1 - share) / share if n_positive else annotated
    missing = np.where(open_here, np.clip(odds, 0, 1), np.nan)
    rows, columns = np.divmod(entries, codes.shape[1])
    return Candidates(rows, columns, annotated, missing, share)


def _before_review(
    positive: np.ndarray, is_open: np.ndarray, reviewed: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Which positives were annotated, and which entries were not, before anybody reviewed some."""
    if reviewed is None or not (positive & ~reviewed).any():
        return positive, is_open
    return positive & ~reviewed, is_open | reviewed


def observed_positives(observed: LabelMatrix) -> np.ndarray:
    """1 where a positive is annotated, else 0."""
    return (observed.to_numpy() == 1).astype(np.float32)


def _likely(
    codes: np.ndarray, logits: np.ndarray, regression: np.ndarray, n_wanted: int
) -> np.ndarray:
    """Which entries are among the best by either score, annotated or not, as a flat mask."""
    takes_part = ~np.isnan(codes).ravel()
    n_kept = max(_LIKELY * int((codes == 1).sum()), 4 * n_wanted, 1000)
    n_kept = min(n_kept, int(takes_part.sum()))
    chosen = np.zeros(codes.size, dtype=bool)
    for values in (logits, regression):
        flat = np.where(takes_part, values.ravel(), -np.inf)
        chosen[np.argpartition(-flat, n_kept - 1)[:n_kept]] = True
    return chosen & takes_part


def _features(
    positive: np.ndarray,
    logits: np.ndarray,
    shares: list[np.ndarray],
    fold: np.ndarray,
    entries: np.ndarray,
) -> np.ndarray:
    """What is seen of each entry; no column looks at the entry's own annotation.

    `shares` are estimates of how often the label is annotated in such a row. Their logarithms
    are taken: trees do not mind, and for a logistic regression they are the evidence that adds up.
    """
    n_rows, n_labels = positive.shape
    rows, columns = np.divmod(entries, n_labels)
    labels = positive.astype(np.float32)
    count = labels.sum(axis=0)
    own = labels.ravel()[entries]
    # The same for all entries of a label: without the entry itself it would betray it.
    frequency = count[columns]
    lift, best = _co_occurrence(labels, fold)
    rank_in_row = _ranks(logits, axis=1).ravel()[entries]
    rank_in_label = _ranks(logits, axis=0).ravel()[entries] + 1.0
    return np.column_stack(
        [
            logits.ravel()[entries],
            lift.ravel()[entries],
            labels.sum(axis=1)[rows] - own,
            np.log((frequency + 0.5) / n_rows),
            np.log1p(rank_in_row),
            np.log(rank_in_label / (frequency + 1.0)),
            *(_log_share(one.ravel()[entries]) for one in (best, *shares)),
        ]
    ).astype(np.float32)


def _log_share(values: np.ndarray) -> np.ndarray:
    return np.log(np.clip(values, 0, 1) + _LEAST_SHARE)


def _ranks(values: np.ndarray, axis: int) -> np.ndarray:
    """Places from the greatest, 0 first."""
    order = np.argsort(-values, axis=axis, kind="stable")
    ranks = np.empty_like(order)
    place = np.arange(values.shape[axis])
    np.put_along_axis(ranks, order, place[:, None] if axis == 0 else place[None, :], axis=axis)
    return ranks


def _co_occurrence(labels: np.ndarray, fold: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Summed log-lift and the best conditional frequency, given the row's other known labels."""
    lift, best = np.zeros_like(labels), np.zeros_like(labels)
    for number in np.unique(fold):
        held = fold == number
        rest = ~held if (~held).any() else held
        together = labels[rest].T @ labels[rest]
        count = np.diag(together).copy()
        frequency = (count + 0.5) / (rest.sum() + 1)
        given = (together + _SMOOTHING * frequency) / (count[:, None] + _SMOOTHING)
        np.fill_diagonal(given, 0)  # a label says nothing about itself
        logs = np.log((given + 1e-6) / frequency)
        np.fill_diagonal(logs, 0)
        lift[held] = labels[held] @ logs
        best[held] = _best_given(labels[held], given)
    return lift, best


def _best_given(known: np.ndarray, given: np.ndarray) -> np.ndarray:
    """For each row the greatest frequency of each label given one that the row has."""
    rows, columns = np.nonzero(known)
    best = np.zeros(known.shape, dtype=np.float32)
    if len(rows):
        starts = np.flatnonzero(np.r_[True, np.diff(rows) > 0])
        # A block of rows at a time: each known label brings a whole line of the table.
        for block in np.array_split(np.arange(len(starts)), max(1, len(rows) // 20_000)):
            if len(block):
                first = starts[block[0]]
                last = starts[block[-1] + 1] if block[-1] + 1 < len(starts) else len(rows)
                lines = given[columns[first:last]].astype(np.float32)
                best[rows[starts[block]]] = np.maximum.reduceat(lines, starts[block] - first)
    return best


def _chances(
    features: np.ndarray,
    targets: np.ndarray,
    fold: np.ndarray,
    learnt: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    """The chance of being annotated, by models fitted on other rows.

    Trees and products need many entries, a plain logistic regression few: the one (or the mean
    of the first two) that predicts the annotations of other rows best, by log loss, is taken.
    Only entries that were chosen by their scores are learnt from: among the others here all are
    annotated, and being one of them would give that away.
    """
    seed = int(rng.integers(2**31))
    logits = [
        _out_of_fold_logits(model, features, targets, fold, learnt, rng) for model in _models(seed)
    ]
    logits.append(np.mean(logits[:2], axis=0))
    signs = np.where(targets[learnt], 1.0, -1.0)
    losses = [np.logaddexp(0, -signs * one[learnt]).mean() for one in logits]
    chances = 1 / (1 + np.exp(-logits[int(np.argmin(losses))]))
    return np.clip(chances, _SUREST, 1 - _SUREST)


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
    # Far more entries than columns: Newton's method needs a few steps where others need hundreds.
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
    learnt: np.ndarray,
    rng: np.random.Generator,
) -> np.ndarray:
    chances = np.full(len(targets), targets.mean())
    for number in np.unique(fold):
        held = fold == number
        rest = np.flatnonzero(~held & learnt)
        if len(rest) > _MOST_TRAINED:
            rest = rng.choice(rest, _MOST_TRAINED, replace=False)
        if len(np.unique(targets[rest])) == 2:  # else nothing to learn: all keep the mean
            chances[held] = model.fit(features[rest], targets[rest]).predict_proba(features[held])[
                :, 1
            ]
    chances = np.clip(chances, _SUREST, 1 - _SUREST)
    return np.log(chances / (1 - chances))


def _annotated_share(
    chances: np.ndarray, is_open: np.ndarray, positive: np.ndarray, n_open: int
) -> float:
    """Estimated share of the positives that are annotated."""
    n_positive = int(positive.sum())
    if n_positive == 0 or n_open == 0:
        return 1.0
    below = np.zeros(max(n_open - int(is_open.sum()), 0))  # the entries that were not looked at
    alpha = missing_share(chances[positive], np.concatenate([chances[is_open], below]))
    # Never all of them: an audit that finds nothing missing would have nothing to rank.
    return float(n_positive / (n_positive + max(alpha * n_open, 1.0)))

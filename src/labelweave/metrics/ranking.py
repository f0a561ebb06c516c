"""Metrics of how well each row ranks its labels.

Each row ranks its known labels only, as if the unknown ones did not exist; a row without a known
label is ignored. Labels of equal score are never ordered by position: the docstring of each metric
says how ties are counted.

Rows with nothing to rank follow scikit-learn: a row without a positive label, or
without a negative one, has ranking loss 0 and label-ranking average precision 1, and a row
without a positive label has coverage 0. They can be left out with ``empty="skip"``; the
result is nan if every row is left out. The other parameters are those of
:mod:`labelweave.metrics.labelwise`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix
from labelweave.metrics._counts import count_known
from labelweave.metrics._curves import Ranked, by_row, score_chunks
from labelweave.metrics._inputs import check_score, check_weight, mean_of_defined

__all__ = ["coverage", "lrap", "one_error", "ranking_loss"]


def ranking_loss(
    Y_true: Any, Y_score: Any, *, sample_weight: Any = None, empty: str = "count"
) -> float:
    """Share of the pairs (positive, negative) of a row in the wrong order, averaged over rows.

    A tie counts as wrong, as in scikit-learn's `label_ranking_loss`.

    Examples
    --------
    >>> ranking_loss([[1, 0, 0], [0, 1, 1]], [[0.5, 0.9, 0.1], [0.2, 0.3, 0.4]])
    0.25
    """
    truth, scores = check_score(Y_true, Y_score)
    losses = by_row(truth, scores, Ranked.wrong_pairs)
    return _mean_of_rows(truth, losses, sample_weight, empty, perfect=0.0)


def lrap(Y_true: Any, Y_score: Any, *, sample_weight: Any = None, empty: str = "count") -> float:
    """Label-ranking average precision.

    For each positive label of a row, the share of positives among the labels that score at least
    as high, averaged over its positives and then over the rows: scikit-learn's
    `label_ranking_average_precision_score`. With ``empty="skip"`` only rows without a positive
    label are left out.

    Examples
    --------
    >>> lrap([[1, 0, 0], [0, 1, 1]], [[0.5, 0.9, 0.1], [0.2, 0.3, 0.4]])
    0.75
    """
    truth, scores = check_score(Y_true, Y_score)
    precisions = by_row(truth, scores, Ranked.average_precision)
    return _mean_of_rows(truth, precisions, sample_weight, empty, perfect=1.0)


def coverage(
    Y_true: Any, Y_score: Any, *, sample_weight: Any = None, empty: str = "count"
) -> float:
    """How far down its ranking a row must go to cover all its positive labels, on average.

    The number of labels that score at least as high as the lowest positive one: scikit-learn's
    `coverage_error`. Part of the literature counts from 0: subtract 1. With
    ``empty="skip"`` only rows without a positive label are left out.

    Examples
    --------
    >>> coverage([[1, 0, 0], [0, 1, 1]], [[0.5, 0.9, 0.1], [0.2, 0.3, 0.4]])
    2.0
    """
    truth, scores = check_score(Y_true, Y_score)
    depths = []
    for block, positive, known in score_chunks(truth, scores):
        lowest = np.where(positive, block, np.inf).min(axis=1, keepdims=True)
        covered = block >= lowest if known is None else (block >= lowest) & known
        depths.append(np.where(positive.any(axis=1), covered.sum(axis=1), np.nan))
    return _mean_of_rows(truth, np.concatenate(depths), sample_weight, empty, perfect=0.0)


def one_error(Y_true: Any, Y_score: Any, *, sample_weight: Any = None) -> float:
    """Share of the rows whose highest-scoring label is not positive.

    Where several labels share the highest score, the share of them that is not positive. Rows
    without a known positive label are left out: no label that they rank first could be right.

    Examples
    --------
    >>> one_error([[1, 0, 0], [0, 1, 1]], [[0.5, 0.9, 0.1], [0.2, 0.3, 0.4]])
    0.5
    """
    truth, scores = check_score(Y_true, Y_score)
    missed = []
    for block, positive, known in score_chunks(truth, scores):
        ranked = block if known is None else np.where(known, block, -np.inf)
        at_top = ranked == ranked.max(axis=1, keepdims=True)
        right = (at_top & positive).sum(axis=1) / at_top.sum(axis=1)
        missed.append(np.where(positive.any(axis=1), 1.0 - right, np.nan))
    return _mean_of_rows(truth, np.concatenate(missed), sample_weight, "skip")


def _mean_of_rows(
    truth: LabelMatrix,
    values: np.ndarray,
    sample_weight: Any,
    empty: str,
    perfect: float = float("nan"),
) -> float:
    """Mean over the rows with a known label; nan values count as perfect or are skipped."""
    if empty not in ("count", "skip"):
        raise InputError(f"empty must be 'count' or 'skip', not {empty!r}")
    weight = check_weight(sample_weight, truth.n_rows)
    if empty == "count":
        values = np.where(np.isnan(values), perfect, values)
    return mean_of_defined(values, count_known(truth, axis=1) > 0, weight)

"""The sections on pairs of labels: which labels occur together, and which are confused."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix, as_labels
from labelweave.reporting.evaluated_model import EvaluatedModel
from labelweave.reporting.heat_maps import (
    HeatMap,
    draw_heat_maps,
    most_frequent,
    similar_side_by_side,
)
from labelweave.reporting.report_content import Block, Figure, Paragraph, Section, Table

__all__ = [
    "CoOccurrence",
    "Confusions",
    "co_occurrence",
    "count_confusions",
    "label_pair_sections",
    "pair_outcomes",
    "top_pairs",
]

_MOST_PAIRS = 12
_MOST_LABELS_SEARCHED = 200


class CoOccurrence(NamedTuple):
    """How labels occur together; arrays of shape (n_labels, n_labels).

    `together` counts the rows with both labels. `share` is P(column | row): among the rows that
    have one label and in which the other is known, the share that has the other too. `lift` is the
    ratio of the number of common rows to that of independent labels. Entries are NaN where a label
    has no row.
    """

    together: np.ndarray
    share: np.ndarray
    lift: np.ndarray


class Confusions(NamedTuple):
    """Which labels are wrongly predicted in rows where another label is missed.

    `confused[i, j]` counts the rows that have label i, which was not predicted, and do not have
    label j, which was. `missed[i]` counts the rows that have i and for which it was not predicted.
    """

    confused: np.ndarray
    missed: np.ndarray

    @property
    def share(self) -> np.ndarray:
        """Among the rows that miss the row's label, the share wrongly assigned the column's."""
        return _ratio(self.confused, np.repeat(self.missed[:, None], len(self.missed), axis=1))


def label_pair_sections(evaluated: EvaluatedModel, n_shown: int) -> list[Section]:
    """Return the sections on labels that occur together and on labels that are confused."""
    titles = ("Label co-occurrence", "Confusion")
    truth = evaluated.truth
    frequent = most_frequent(truth, n_shown)
    if len(frequent) < 2:
        text = "Fewer than two labels occur in the scored rows."
        return [Section(title, [Paragraph(text)]) for title in titles]
    order = similar_side_by_side(co_occurrence(truth[:, frequent]).share)
    columns = frequent[order]
    n, n_all = len(columns), truth.n_labels
    which = "all labels" if n == n_all else f"the {n} most frequent of {n_all:,} labels"
    return [
        Section(titles[0], _co_occurrence_figures(evaluated, columns, which)),
        Section(titles[1], [_confusion_block(evaluated, columns, which), *_pair_table(evaluated)]),
    ]


def _co_occurrence_figures(
    evaluated: EvaluatedModel, columns: np.ndarray, which: str
) -> list[Block]:
    names = [evaluated.truth.names[j] for j in columns]
    true_share = _without_diagonal(co_occurrence(evaluated.truth[:, columns]).share)
    predicted = as_labels(evaluated.predicted[:, columns].astype(np.float32))
    predicted_share = _without_diagonal(co_occurrence(predicted).share)
    gaps = np.abs(true_share - predicted_share)
    difference = (
        f"the mean absolute difference is {np.nanmean(gaps):.3f}"
        if np.isfinite(gaps).any()
        else "they have no defined cell in common"
    )
    maps = [
        HeatMap("true labels", true_share, (0.0, 1.0)),
        HeatMap("predicted labels", predicted_share, (0.0, 1.0)),
    ]
    figure = Figure(
        "co-occurrence",
        draw_heat_maps(
            "co-occurrence",
            maps,
            names,
            rows="of the rows with this label…",
            columns="…this share also has that label",
            unit="share",
        ),
        "Which labels occur together",
        f"Two heat maps of {which}, for the true and the predicted labels; {difference}.",
        f"{which.capitalize()}; labels that occur together are placed side by side. The two maps "
        "are alike if the model has learned the dependence of the labels. Cells of labels "
        "without a row are empty.",
    )
    return [figure, *_embedding_figure(evaluated, names, true_share, which)]


def _embedding_figure(
    evaluated: EvaluatedModel, names: list[str], true_share: np.ndarray, which: str
) -> list[Block]:
    label_similarity = getattr(evaluated.method, "label_similarity", None)
    if label_similarity is None:
        return []
    cosines = _without_diagonal(label_similarity("cosine").loc[names, names].to_numpy(dtype=float))
    both = np.isfinite(cosines) & np.isfinite(true_share)
    correlation = np.nan
    if both.sum() > 2 and np.ptp(cosines[both]) > 0 and np.ptp(true_share[both]) > 0:
        correlation = float(np.corrcoef(cosines[both], true_share[both])[0, 1])
    svg = draw_heat_maps(
        "label-embeddings",
        [HeatMap("cosines of label embeddings", cosines)],
        names,
        rows="label",
        columns="label",
        unit="cosine",
    )
    return [
        Figure(
            "label-embeddings",
            svg,
            "Similarity of the learned label embeddings",
            f"Heat map of cosines of {which}; their correlation with the shares of common rows is "
            f"{correlation:.2f}.",
            "The labels are in the order of the plot above: labels that occur together should "
            "have similar embeddings. Correlation of these cosines with the shares above: "
            f"{correlation:.2f}.",
        )
    ]


def _confusion_block(evaluated: EvaluatedModel, columns: np.ndarray, which: str) -> Block:
    names = [evaluated.truth.names[j] for j in columns]
    confusions = count_confusions(evaluated.truth[:, columns], evaluated.predicted[:, columns])
    if not confusions.confused.any():
        return Paragraph("No row misses one of these labels and is wrongly assigned another.")
    first, second = np.unravel_index(confusions.confused.argmax(), confusions.confused.shape)
    heat_map = HeatMap("predicted in place of a missed label", _without_diagonal(confusions.share))
    return Figure(
        "confusion",
        draw_heat_maps(
            "confusion",
            [heat_map],
            names,
            rows="of the rows that miss this label…",
            columns="…this share is wrongly assigned that label",
            unit="share",
        ),
        "Which labels are predicted in place of a missed label",
        f"Most often {names[first]} is missed and {names[second]} wrongly predicted: "
        f"{confusions.confused[first, second]:.0f} of {confusions.missed[first]:.0f} rows.",
        f"{which.capitalize()}. A dark line means that nothing else is predicted where the label "
        "is missed.",
    )


def _pair_table(evaluated: EvaluatedModel) -> list[Block]:
    truth = evaluated.truth
    frequent = most_frequent(truth, _MOST_LABELS_SEARCHED)
    pair_counts = co_occurrence(truth[:, frequent])
    top = top_pairs(pair_counts.together, _MOST_PAIRS)
    if not top:
        return [Paragraph("No two labels occur in the same row.")]
    pairs = [(int(frequent[i]), int(frequent[j])) for i, j in top]
    outcomes = pair_outcomes(truth, evaluated.predicted, pairs)
    rows = [
        (
            truth.names[a],
            truth.names[b],
            int(outcomes["both_true"][k]),
            float(pair_counts.lift[top[k]]),
            *(int(counts[k]) for name, counts in outcomes.items() if name != "both_true"),
        )
        for k, (a, b) in enumerate(pairs)
    ]
    header = ["first", "second", "rows with both", "lift", "both found", "first only"]
    header += ["second only", "neither", "rows with one", "both predicted there"]
    caption = f"Pairs of labels that occur together, {evaluated.rows_description}"
    return [
        Paragraph(
            "The pairs of labels that occur together most often, and what the model predicts for "
            "them. Lift is the number of common rows divided by the number to be expected of "
            "independent labels."
        ),
        Table(caption, header, rows, digits=2),
    ]


def co_occurrence(Y: LabelMatrix) -> CoOccurrence:
    """Compute how labels occur together, for each pair over the rows in which both are known.

    >>> from labelweave.labels import as_labels
    >>> result = co_occurrence(as_labels([[1, 1], [1, 0], [0, 0], [1, np.nan]]))
    >>> [float(array[0, 1]) for array in result]
    [1.0, 0.5, 1.5]
    """
    positive, known = Y.positive().astype(np.float64), Y.known()
    together = _product(positive, positive)
    if known is None:
        in_known = np.repeat(np.diag(together)[:, None], Y.n_labels, axis=1)
        n_rows = np.full_like(together, Y.n_rows)
    else:
        known = known.astype(np.float64)
        in_known, n_rows = _product(positive, known), _product(known, known)
    return CoOccurrence(
        together,
        _ratio(together, in_known),
        _ratio(together * n_rows, in_known * in_known.T),
    )


def top_pairs(together: np.ndarray, n_pairs: int) -> list[tuple[int, int]]:
    """Return the pairs of different labels with the most common rows, the most frequent first.

    >>> top_pairs(np.array([[9, 1, 3], [1, 9, 0], [3, 0, 9]]), 5)
    [(0, 2), (0, 1)]
    """
    first, second = np.triu_indices(len(together), k=1)
    counts = together[first, second]
    order = np.argsort(-counts, kind="stable")[:n_pairs]
    return [(int(first[k]), int(second[k])) for k in order if counts[k] > 0]


def count_confusions(Y: LabelMatrix, predicted: np.ndarray) -> Confusions:
    """Count missed labels against labels wrongly predicted in the same rows.

    Unknown entries count as neither.

    >>> from labelweave.labels import as_labels
    >>> Y, predicted = as_labels([[1, 0], [1, 0], [1, 1]]), np.array([[0, 1], [0, 0], [0, 1]])
    >>> count_confusions(Y, predicted)
    Confusions(confused=array([[0., 1.],
           [0., 0.]]), missed=array([3., 0.]))
    """
    values, predicted = Y.to_numpy(), np.asarray(predicted).astype(bool)
    missed, added = (values == 1) & ~predicted, (values == 0) & predicted
    confused = _product(missed.astype(np.float64), added.astype(np.float64))
    return Confusions(confused, missed.sum(axis=0).astype(float))


def pair_outcomes(
    Y: LabelMatrix, predicted: np.ndarray, pairs: list[tuple[int, int]]
) -> dict[str, np.ndarray]:
    """Count what was predicted for the rows that have both labels of a pair, or only one.

    Returns
    -------
    dict of arrays with one number per pair
        The rows with both labels (``both_true``) and, among them, those for which
        ``both_predicted``, ``only_first``, ``only_second`` or ``neither`` was predicted. The rows
        that have one label and are known not to have the other (``one_true``) and, among them,
        those for which both were predicted (``one_true_both_predicted``).

    >>> from labelweave.labels import as_labels
    >>> Y, predicted = as_labels([[1, 1], [1, 1], [1, 0]]), np.array([[1, 1], [1, 0], [1, 1]])
    >>> counts = pair_outcomes(Y, predicted, [(0, 1)])
    >>> [int(counts[name][0]) for name in ("both_true", "both_predicted", "only_first")]
    [2, 1, 1]
    """
    columns = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    predicted = np.asarray(predicted).astype(bool)
    # Only the labels of the pairs are made dense.
    first, second = (Y[:, columns[:, k]].to_numpy() for k in (0, 1))
    first_predicted, second_predicted = (predicted[:, columns[:, k]] for k in (0, 1))
    both = (first == 1) & (second == 1)
    one = ((first == 1) & (second == 0)) | ((first == 0) & (second == 1))
    cases = {
        "both_true": both,
        "both_predicted": both & first_predicted & second_predicted,
        "only_first": both & first_predicted & ~second_predicted,
        "only_second": both & ~first_predicted & second_predicted,
        "neither": both & ~first_predicted & ~second_predicted,
        "one_true": one,
        "one_true_both_predicted": one & first_predicted & second_predicted,
    }
    return {name: rows.sum(axis=0) for name, rows in cases.items()}


def _product(a: Any, b: Any) -> np.ndarray:
    product = a.T @ b
    return product.toarray() if sp.issparse(product) else np.asarray(product)


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    return np.divide(above, below, out=np.full(np.shape(below), np.nan), where=below > 0)


def _without_diagonal(values: np.ndarray) -> np.ndarray:
    values = values.astype(float)
    np.fill_diagonal(values, np.nan)
    return values

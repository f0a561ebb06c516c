"""The section on labels by frequency, where there are too many for a row each."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from labelweave.metrics import score_predictions
from labelweave.reporting.evaluated_model import EvaluatedModel
from labelweave.reporting.report_content import Block, Paragraph, Section, Table
from labelweave.thresholds.sparse_scores import best_of_rows, chosen_entries

__all__ = ["label_frequencies_section"]

_LEAST = (0, 1, 5, 20, 100)  # positives of the least frequent label of each bin
_BEST = 5


def label_frequencies_section(evaluated: EvaluatedModel) -> Section:
    """Return a table of the scores of labels that are about equally frequent.

    All entries of the labels of a bin are pooled.
    """
    truth, scores = evaluated.truth, evaluated.probabilities
    table = evaluated.scores.per_label()
    frequency, where = table["positives"].to_numpy(), "scored"
    if evaluated.train_labels is not None:
        frequency, _ = evaluated.train_labels.select(truth.names).counts()
        where = "training"
    best = chosen_entries(scores, best_of_rows(scores, _BEST))
    rows = []
    for place, least in enumerate(_LEAST):
        most = _LEAST[place + 1] - 1 if place + 1 < len(_LEAST) else None
        in_bin = (frequency >= least) & (frequency <= (np.inf if most is None else most))
        columns = np.flatnonzero(in_bin)
        name = f"{least}+" if most is None else f"{least}" if most == least else f"{least}-{most}"
        if not len(columns):
            rows.append((name, 0, 0, None, None, None, None))
            continue
        labels = truth.select([truth.names[j] for j in columns])
        sets = sp.csr_array(evaluated.predicted[:, columns])
        chosen = score_predictions(
            labels, Y_pred=sets, metrics=["precision_micro", "recall_micro", "f1_micro"]
        )
        in_best = score_predictions(labels, Y_pred=best[:, columns], metrics=["recall_micro"])
        n_positive = int(table["positives"].to_numpy()[columns].sum())
        # Without a positive there is nothing to recall, and F1 says nothing.
        recalls = [chosen["recall_micro"], chosen["f1_micro"], in_best["recall_micro"]]
        of_positives = recalls if n_positive else [None] * 3
        is_predicted = sets.nnz > 0
        precision = chosen["precision_micro"] if is_predicted else None
        rows.append((name, len(columns), n_positive, precision, *of_positives))
    columns_named = (
        f"{where} positives",
        "labels",
        "scored positives",
        "precision",
        "recall",
        "F1",
        f"in the best {_BEST}",
    )
    blocks: list[Block] = [
        Paragraph(
            f"With {truth.n_labels:,} labels the model predicts the best of each row alone. "
            "Sections that need the probabilities of all labels are left out: precision-recall "
            "and reliability curves, thresholds, what the labels depend on, pairs of labels."
        ),
        Table(
            f"Labels by their positives among the {where} rows, {evaluated.rows_description}; "
            f"all entries of a line are pooled, and the last column is the share of the positives "
            f"that are among the best {_BEST} of their row",
            columns_named,
            rows,
        ),
    ]
    return Section("Labels by frequency", blocks)

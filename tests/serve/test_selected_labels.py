"""Labels of a request from a sparse matrix of the best labels of each row."""

import numpy as np
import pytest

from labelweave import top_labels
from labelweave.labels import as_labels
from labelweave.serve.inputs_and_labels import LabelSelection, ScoredRows, select_labels
from labelweave.serve.loaded_model import _probabilities
from labelweave.thresholds import FixedThreshold
from labelweave.top_labels import top_of_dense
from labelweave.unseen.label_tree import LabelTree


@pytest.mark.parametrize(
    "selection",
    [
        {},
        {"threshold": 0.8},
        {"top_k": 3},
        {"top_k": 2, "threshold": 0.9},
        {"top_k": 1, "labels": ["l3", "l1"]},
        {"labels": ["l7", "l2", "l4"]},
    ],
)
def test_the_best_labels_alone_give_the_same_selection(selection):
    P = np.random.default_rng(0).random((20, 8)).round(1) + 0.05  # with ties
    names = np.array([f"l{j}" for j in range(8)], dtype=object)
    rule = FixedThreshold(0.6)
    dense = select_labels(ScoredRows(P, names, rule), LabelSelection(**selection))
    sparse = ScoredRows(top_of_dense(P, 8), names, rule)
    assert select_labels(sparse, LabelSelection(**selection)) == dense
    with_scores = select_labels(sparse, LabelSelection(scores=True, **selection))
    assert [row["labels"] for row in with_scores] == [row["labels"] for row in dense]


def test_scores_are_those_of_the_best_labels():
    P, names = np.array([[0.2, 0.9, 0.6]]), np.array(["a", "b", "c"], dtype=object)
    scored = ScoredRows(top_of_dense(P, 2), names, FixedThreshold(0.7))
    assert select_labels(scored, LabelSelection(scores=True)) == [
        {
            "labels": [{"label": "b", "score": 0.9}],
            "scores": [{"label": "b", "score": 0.9}, {"label": "c", "score": 0.6}],
        }
    ]


def test_a_batch_of_many_labels_stays_sparse(monkeypatch):
    monkeypatch.setattr(top_labels, "MANY_LABELS", 50)
    Y = np.eye(60)
    model = LabelTree(1, max_leaves=4, random_state=0).fit(Y, as_labels(Y))
    assert _probabilities(model, Y[:3]).nnz <= 3 * 50

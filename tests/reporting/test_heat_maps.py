"""Which labels a heat map shows, and in which order."""

import numpy as np

from labelweave.labels import as_labels
from labelweave.reporting.heat_maps import most_frequent, similar_side_by_side


def test_most_frequent_labels_first(labels):
    positives, _ = labels.counts()
    order = most_frequent(labels, 3)
    assert positives[order].tolist() == sorted(positives, reverse=True)[:3]
    assert 4 not in most_frequent(labels, 5)  # never positive
    assert len(most_frequent(as_labels(np.zeros((2, 3))), 2)) == 2


def test_similar_labels_stand_side_by_side():
    similarity = np.array(
        [[9, 0, 8, 0], [0, 9, 0, 7], [8, 0, 9, 0], [np.nan, 7, 0, 9]], dtype=float
    )
    order = similar_side_by_side(similarity).tolist()
    assert sorted(order) == [0, 1, 2, 3]
    assert abs(order.index(0) - order.index(2)) == 1
    assert abs(order.index(1) - order.index(3)) == 1
    assert similar_side_by_side(np.ones((2, 2))).tolist() == [0, 1]

"""The rows that a report shows as examples."""

import numpy as np

from labelweave.labels import as_labels
from labelweave.reporting.model_sections.example_rows import choose_rows, describe_rows


def test_examples_are_of_their_kind(labels, scores):
    Y, predicted = labels.to_numpy(), scores > 0.5
    chosen = choose_rows(labels, predicted, scores, 4)
    wrong = [
        any((v == 1 and not g) or (v == 0 and g) for v, g in zip(*pair, strict=True))
        for pair in zip(Y, predicted, strict=True)
    ]
    has_known = ~np.isnan(Y).all(axis=1)
    assert chosen.n_wrong == sum(wrong)
    assert chosen.n_right == sum(has_known) - sum(wrong)
    assert all(not wrong[i] and (Y[i] == 1).any() for i in chosen.right)
    assert all(wrong[i] for i in [*chosen.wrong, *chosen.most_confident_errors])
    error = [
        max(
            [
                abs(v - s)
                for v, s, g in zip(Y[i], scores[i], predicted[i], strict=True)
                if v + g == 1
            ]
        )
        for i in chosen.most_confident_errors
    ]
    assert error == sorted(error, reverse=True)


def test_rows_in_words():
    Y = as_labels([[1, 1, 0, np.nan]], names=["a", "b", "c", "d"])
    (example,) = describe_rows(Y, np.array([[1, 0, 1, 1]]), np.array([0]))
    assert example == (0, ["a"], ["b"], ["c"], ["d"])

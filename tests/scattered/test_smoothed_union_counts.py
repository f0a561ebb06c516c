"""The distribution of the number of labels, against enumeration of all label sets."""

import numpy as np
from scattered_data import enumerated

from labelweave.scattered import smoothed_union_counts
from labelweave.scattered.smoothed_union_counts import (
    count_probabilities,
    count_weights,
    reweight_by_count,
    sharpened_counts,
)


def random_probabilities(rows=40, labels=5, seed=0):
    return np.random.default_rng(seed).uniform(0.01, 0.99, size=(rows, labels))


def test_counts_are_those_of_all_label_sets():
    p, weights = random_probabilities(), np.array([0.1, 1.0, 0.7, 0.2, 0.05, 0.6])
    counts, expected = enumerated(p, weights)
    assert np.allclose(count_probabilities(p), counts)
    assert np.allclose(reweight_by_count(p, weights), expected)


def test_larger_numbers_count_as_the_largest(monkeypatch):
    monkeypatch.setattr(smoothed_union_counts, "MAX_COUNT", 2)
    p, weights = random_probabilities(), np.array([0.2, 1.0, 0.3])
    counts, expected = enumerated(p, weights)
    assert np.allclose(
        count_probabilities(p), np.column_stack([counts[:, :2], counts[:, 2:].sum(1)])
    )
    assert np.allclose(reweight_by_count(p, weights), expected)


def test_chunks_of_rows_change_nothing(monkeypatch):
    p, weights = random_probabilities(), np.array([0.1, 1.0, 0.7, 0.2, 0.05, 0.6])
    expected = reweight_by_count(p, weights)
    monkeypatch.setattr(
        smoothed_union_counts, "row_chunks", lambda n, _: [slice(0, 7), slice(7, n)]
    )
    assert np.array_equal(reweight_by_count(p, weights), expected)


def test_weights_lead_to_the_requested_shares():
    p, shares = random_probabilities(200, 4), np.array([0.05, 0.6, 0.3, 0.04, 0.01])
    posterior = count_probabilities(p) * count_weights(p, shares)
    posterior /= posterior.sum(1, keepdims=True)
    assert np.allclose(posterior.mean(axis=0), shares, atol=0.02)
    independent = count_probabilities(p).mean(axis=0)
    assert np.allclose(reweight_by_count(p, count_weights(p, independent)), p)
    assert np.allclose(sharpened_counts(p, 1.0), independent)

"""Iterative stratification in batches against the algorithm that assigns row by row."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.data.stratification import _quotas, assign_parts


def row_by_row(Y, sizes, rng):
    """Sechidis et al. 2011, Algorithm 1, as it is written: the reference implementation."""
    n_parts = len(sizes)
    asked = np.asarray(sizes, dtype=float)
    asked_label = np.outer(asked / asked.sum(), Y.sum(axis=0))
    part = np.full(len(Y), -1)
    while (part < 0).any():
        left = Y[part < 0].sum(axis=0)
        if not left.any():
            for row in np.flatnonzero(part < 0):
                part[row] = int(asked.argmax())
                asked[part[row]] -= 1
            break
        label = int(np.where(left > 0, left, np.inf).argmin())
        for row in np.flatnonzero((part < 0) & (Y[:, label] == 1)):
            best = np.flatnonzero(asked_label[:, label] == asked_label[:, label].max())
            best = best[asked[best] == asked[best].max()]
            part[row] = int(rng.choice(best))
            asked_label[part[row]] -= Y[row]
            asked[part[row]] -= 1
    assert part.max() < n_parts
    return part


def imbalance(Y, part, n_parts):
    """Mean absolute deviation of the labels' shares in the parts from their overall shares."""
    shares = np.array([Y[part == p].mean(axis=0) for p in range(n_parts)])
    return np.abs(shares - Y.mean(axis=0)).mean()


def pair_imbalance(Y, part, n_parts):
    overall = Y.T @ Y / len(Y)
    parts = [Y[part == p].T @ Y[part == p] / (part == p).sum() for p in range(n_parts)]
    upper = np.triu_indices(Y.shape[1], 1)
    return np.mean([np.abs(p - overall)[upper].mean() for p in parts])


def correlated_labels(n_rows, n_labels, seed):
    """Correlated labels with a long tail."""
    rng = np.random.default_rng(seed)
    latent = rng.normal(size=(n_rows, 3)) @ rng.normal(size=(3, n_labels))
    latent += rng.normal(size=latent.shape)
    frequency = 0.5 / np.arange(1, n_labels + 1)
    cut = [np.quantile(latent[:, j], 1 - frequency[j]) for j in range(n_labels)]
    return (latent > cut).astype(int)


@pytest.mark.parametrize("n_parts", [2, 5, 10])
@pytest.mark.parametrize("shape", [(300, 6), (700, 40)])
def test_balance_is_no_worse_than_row_by_row(shape, n_parts):
    sizes = np.full(n_parts, shape[0] // n_parts)
    sizes[: shape[0] % n_parts] += 1
    measured = []
    for seed in range(6):
        Y = correlated_labels(*shape, seed)
        batched = assign_parts(sp.csr_array(Y), sizes, np.random.default_rng(seed))
        reference = row_by_row(Y, sizes, np.random.default_rng(seed))
        assert np.bincount(batched).tolist() == sizes.tolist()
        measured.append(
            [
                [measure(Y, part, n_parts) for part in (batched, reference)]
                for measure in (imbalance, pair_imbalance)
            ]
        )
    (labels, labels_reference), (pairs, pairs_reference) = np.mean(measured, axis=0)
    assert labels <= 1.001 * labels_reference
    assert pairs < pairs_reference


def test_every_label_is_within_one_of_its_share():
    Y = correlated_labels(2000, 20, seed=0)
    part = assign_parts(sp.csr_array(Y), np.full(5, 400), np.random.default_rng(0))
    counts = np.array([Y[part == p].sum(axis=0) for p in range(5)])
    assert np.abs(counts - Y.sum(axis=0) / 5).max() < 1


@settings(max_examples=200)
@given(
    demand=st.lists(st.integers(-30, 60), min_size=2, max_size=6),
    data=st.data(),
)
def test_quotas_equal_those_of_assigning_item_by_item(demand, data):
    # Fifths, so that sums are not whole; different last digits, so that there are no ties.
    asked = np.array(demand) / 5 + np.arange(len(demand)) * 1e-3
    room = np.array(
        data.draw(st.lists(st.integers(0, 9), min_size=len(asked), max_size=len(asked)))
    )
    n_items = data.draw(st.integers(0, int(room.sum())))
    expected = np.zeros(len(asked), dtype=int)
    for _ in range(n_items):
        open_demand = np.where(expected < room, asked - expected, -np.inf)
        expected[open_demand.argmax()] += 1
    if n_items:
        quota = _quotas(asked, room.astype(float), n_items, 1.0, 1.0, np.random.default_rng(0))
        assert quota.tolist() == expected.tolist()


def test_counts_of_groups_are_not_disturbed_by_sorting():
    # A group's counts differ from label to label: they must stay with their labels.
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.7, size=(400, 12))
    sizes = np.maximum(counts.max(axis=1), 1) + 2
    n_rows = int(sizes.sum())
    part_sizes = np.array([n_rows - 3 * (n_rows // 4)] + [n_rows // 4] * 3)
    part = assign_parts(sp.csr_array(counts), part_sizes, rng, sizes)
    held = np.array([counts[part == p].sum(axis=0) for p in range(4)])
    expected = np.outer(part_sizes / n_rows, counts.sum(axis=0))
    chance = np.array([counts[rng.permutation(part) == p].sum(axis=0) for p in range(4)])
    assert np.abs(held - expected).mean() < 0.3 * np.abs(chance - expected).mean()
    assert np.abs(np.bincount(part, weights=sizes) - part_sizes).max() <= 1


def test_the_input_is_not_changed():
    counts = sp.csr_array(np.array([[2.0, 1.0], [1.0, 0.0], [0.0, 3.0], [1.0, 1.0]]))
    before = counts.toarray()
    assign_parts(counts, np.array([4, 4]), np.random.default_rng(0), np.array([3, 1, 3, 1]))
    np.testing.assert_array_equal(counts.toarray(), before)

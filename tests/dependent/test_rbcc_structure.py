"""Inference on forests against sums over all label sets; structures that are known."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from labelweave.dependent.rbcc_structure import LabelForest, cross_residuals, learn_parents

FORESTS = {
    "roots": [-1, -1, -1],
    "chain": [1, 2, -1, 0],
    "star": [2, 2, -1, 2, 2],
    "two trees": [-1, 0, 0, 5, 5, -1, 4],
    "one label": [-1],
}


def drawn(parents, n_rows=4, unknown=0.6, seed=0):
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(n_rows, len(parents), 2, generator=generator, dtype=torch.float64)
    for j, parent in enumerate(parents):
        if parent < 0:
            logits[:, j, 1] = logits[:, j, 0]
    p = torch.sigmoid(logits)
    tables = torch.log(torch.stack([1 - p, p], dim=-1))
    known = (torch.rand(n_rows, len(parents), generator=generator) < 0.5).double()
    hide = torch.rand(n_rows, len(parents), generator=generator) < unknown
    return tables, known.masked_fill(hide, torch.nan)


def joint(tables, parents, row):
    """The probability of each label set, by the product of the tables."""
    probabilities = {}
    for labels in itertools.product([0, 1], repeat=len(parents)):
        steps = (
            tables[row, j, labels[parent] if parent >= 0 else 0, labels[j]].item()
            for j, parent in enumerate(parents)
        )
        probabilities[labels] = math.exp(sum(steps))
    return probabilities


def agreeing(sets, known):
    return {
        labels: p
        for labels, p in sets.items()
        if all(math.isnan(k) or k == v for k, v in zip(known, labels, strict=True))
    }


@pytest.mark.parametrize("parents", FORESTS.values(), ids=FORESTS)
@pytest.mark.parametrize("unknown", [0.0, 0.6, 1.0])
def test_everything_is_the_sum_over_label_sets(parents, unknown):
    tables, known = drawn(parents, unknown=unknown)
    forest = LabelForest(parents)
    likelihood = forest.log_likelihood(tables, known).exp()
    marginals = forest.marginals(tables, known).exp()
    best = forest.most_probable(tables, known)
    for row in range(len(tables)):
        sets = joint(tables, parents, row)
        assert sum(sets.values()) == pytest.approx(1)
        left = agreeing(sets, known[row].tolist())
        total = sum(left.values())
        assert likelihood[row].item() == pytest.approx(total)
        for j in range(len(parents)):
            expected = sum(p for labels, p in left.items() if labels[j] == 1) / total
            assert marginals[row, j, 1].item() == pytest.approx(expected)
            assert marginals[row, j].sum().item() == pytest.approx(1)
        assert tuple(best[row].int().tolist()) == max(left, key=left.get)


def test_without_knowledge_is_all_unknown():
    tables, _ = drawn(FORESTS["two trees"])
    forest = LabelForest(FORESTS["two trees"])
    nothing = torch.full(tables.shape[:2], torch.nan)
    torch.testing.assert_close(forest.marginals(tables), forest.marginals(tables, nothing))
    assert torch.equal(forest.most_probable(tables), forest.most_probable(tables, nothing))


def test_gradients_of_the_likelihood_are_finite_and_right():
    tables, known = drawn(FORESTS["two trees"])
    forest = LabelForest(FORESTS["two trees"])
    assert torch.autograd.gradcheck(
        lambda t: forest.log_likelihood(t, known), tables.requires_grad_()
    )


def test_a_tree_is_found_again():
    """Each value is its parent's with noise; nearer labels are more alike, so edges are sure."""
    rng = np.random.default_rng(0)
    parents = [-1, 0, 1, 1, 0, -1, 5]
    values = np.empty((2000, len(parents)))
    for j in (0, 5, 1, 4, 6, 2, 3):
        noise = rng.normal(size=2000)
        values[:, j] = noise if parents[j] < 0 else values[:, parents[j]] + 0.7 * noise
    for share in (0.0, 0.3):
        hidden = np.where(rng.random(values.shape) < share, np.nan, values)
        learnt = learn_parents(hidden)
        edges = {frozenset((j, int(p))) for j, p in enumerate(learnt) if p >= 0}
        assert edges == {frozenset((j, p)) for j, p in enumerate(parents) if p >= 0}
        assert (learnt == -1).sum() == 2


def test_noise_gets_no_edges_and_constants_do_no_harm():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(500, 5))
    values[:, 4] = 1.0
    assert (learn_parents(values) >= 0).sum() <= 1  # a price of log(n) / 2 lets few through
    assert learn_parents(values)[4] == -1
    assert learn_parents(values[:, :1]).tolist() == [-1]


def test_residuals_leave_out_what_the_features_explain():
    rng = np.random.default_rng(0)
    X, coin = rng.normal(size=(800, 4)), rng.integers(0, 2, (800, 1))
    by_features = (X[:, :1] > 0).astype(float)
    Y = np.hstack([by_features, by_features, coin, coin])
    Y[::7, 2] = np.nan
    residuals = cross_residuals(X, Y)
    assert np.isnan(residuals).sum() == np.isnan(Y).sum()
    assert np.nanstd(residuals[:, 0]) < 0.8 * np.nanstd(Y[:, 0])
    assert np.nanstd(residuals[:, 3]) == pytest.approx(np.nanstd(Y[:, 3]), rel=0.05)
    np.testing.assert_allclose(cross_residuals(sp.csr_array(X), Y), residuals, atol=1e-3)
    np.testing.assert_array_equal(cross_residuals(X, Y, seed=0), residuals)


def test_residuals_are_those_of_ridge_regression():
    from sklearn.linear_model import Ridge

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 6)), rng.integers(0, 2, (40, 3)).astype(float)
    order = np.random.default_rng(5).permutation(40)
    residuals = cross_residuals(X, Y, seed=5)
    for fitted, asked in ((order[:20], order[20:]), (order[20:], order[:20])):
        spread = np.square(X[fitted] - X[fitted].mean(axis=0)).sum()
        model = Ridge(alpha=0.01 * spread / 6).fit(X[fitted], Y[fitted])
        np.testing.assert_allclose(residuals[asked], Y[asked] - model.predict(X[asked]), atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_features_far_from_zero_do_no_harm(form):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 4)), rng.integers(0, 2, (60, 3)).astype(float)
    X[:, 3] = 1.7e9
    assert np.isfinite(cross_residuals(form(X), Y)).all()
    np.testing.assert_allclose(
        cross_residuals(X, Y), cross_residuals(X - [0, 0, 0, 1.7e9], Y), atol=1e-6
    )

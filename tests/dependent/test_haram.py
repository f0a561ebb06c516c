"""HARAM against fuzzy ART written with complement-coded vectors, one row at a time."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.dependent.haram import HARAM
from labelweave.dependent.haram_boxes import Boxes, grow_boxes


def complement(A):
    return np.hstack([A, 1 - A])


def haram_by_loops(X, Y, Q, vigilance, drop):
    """Nodes, choice, match, fast learning and votes as the paper writes them."""
    nodes, sets, counts = [], [], []
    for code, y in zip(complement(X), Y, strict=True):
        best, winner = -1.0, None
        for j, (w, labels) in enumerate(zip(nodes, sets, strict=True)):
            if not np.array_equal(labels, y, equal_nan=True):
                continue
            overlap = np.minimum(code, w).sum()
            if overlap / code.sum() > vigilance and overlap / w.sum() >= best:
                best, winner = overlap / w.sum(), j
        if winner is None:
            nodes.append(code)
            sets.append(y)
            counts.append(1)
        else:
            nodes[winner] = np.minimum(nodes[winner], code)
            counts[winner] += 1
    result = np.empty((len(Q), Y.shape[1]))
    for i, code in enumerate(complement(Q)):
        T = np.array([np.minimum(code, w).sum() / w.sum() for w in nodes])
        active = (T.max() - T) / T.max() <= drop * (T.max() - T.min())
        for label in range(Y.shape[1]):
            votes = [(T[j] * counts[j], sets[j][label]) for j in np.flatnonzero(active)]
            votes = [(weight, y) for weight, y in votes if not np.isnan(y)]
            total = sum(weight for weight, _ in votes)
            frequency = np.nanmean(Y[:, label])
            result[i, label] = sum(w * y for w, y in votes) / total if votes else frequency
    return result, len(nodes)


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.random((120, 6))
    Y = (X[:, :3] + 0.2 * rng.normal(size=(120, 3)) > 0.6).astype(float)
    return X, Y, rng.random((40, 6))


@pytest.mark.parametrize("unknown", [0.0, 0.2])
@pytest.mark.parametrize(("vigilance", "drop"), [(0.9, 0.02), (0.7, 0.2), (0.99, 1.0)])
def test_equals_the_equations(data, unknown, vigilance, drop):
    X, Y, Q = data
    Y[np.random.default_rng(1).random(Y.shape) < unknown] = np.nan
    expected, n_boxes = haram_by_loops(X, Y, Q, vigilance, drop)
    model = HARAM(vigilance, drop).fit(X, Y)
    assert len(model.lower_) == n_boxes
    np.testing.assert_allclose(model.predict_proba(Q), expected, atol=1e-9)


@pytest.mark.parametrize("values", ["binary", "counts"])
def test_sparse_features_equal_the_equations(values):
    rng = np.random.default_rng(2)
    X = (rng.random((150, 60)) < 0.1) * (1.0 if values == "binary" else rng.random((150, 60)))
    Y = (X[:, :4] > 0.3).astype(float)
    expected, n_boxes = haram_by_loops(X[:110], Y[:110], X[110:], 0.9, 0.05)
    model = HARAM(0.9, 0.05).fit(sp.csr_array(X[:110]), sp.csr_array(Y[:110]))
    assert sp.issparse(model.lower_)
    assert model.lower_.shape[0] == n_boxes
    for form in (sp.csr_array, np.asarray):
        np.testing.assert_allclose(model.predict_proba(form(X[110:])), expected, atol=1e-9)


def test_overlap_is_the_sum_of_minima(data):
    X, _, Q = data
    lower, upper = X[:50] * 0.8, np.minimum(X[:50] * 1.1, 1)
    lower[::2] = upper[::2]  # points
    w = np.hstack([lower, 1 - upper])
    expected = np.array([[np.minimum(code, one).sum() for one in w] for code in complement(Q)])
    np.testing.assert_allclose(Boxes(lower, upper).overlaps(Q), expected)
    sparse = Boxes(sp.csr_array(lower), sp.csr_array(upper))
    np.testing.assert_allclose(sparse.overlaps(sp.csr_array(Q)), expected)
    np.testing.assert_allclose(sparse.norms, w.sum(axis=1))


def test_boxes_hold_their_rows(data):
    X, _, _ = data
    lower, upper, owner = grow_boxes(X, X, 0.7)
    assert 1 < len(lower) < len(X)
    for box in range(len(lower)):
        np.testing.assert_array_equal(lower[box], X[owner == box].min(axis=0))
        np.testing.assert_array_equal(upper[box], X[owner == box].max(axis=0))


def test_the_second_layer_opens_the_nearest_clusters(data):
    X, Y, Q = data
    exact = HARAM().fit(X, Y).predict_proba(Q)
    all_open = HARAM(cluster_vigilance=0.6, open_clusters=1000).fit(X, Y)
    assert 1 < len(all_open.cluster_lower_) < len(all_open.lower_)
    np.testing.assert_allclose(all_open.predict_proba(Q), exact)
    few = HARAM(cluster_vigilance=0.6, open_clusters=2).fit(X, Y)
    opened = ~np.isnan(few._activations(few._scaled(Q)))
    hulls = few._hulls.overlaps(Q) / few._hulls.norms
    for i in range(len(Q)):
        best = np.argsort(-hulls[i], kind="stable")[:2]
        np.testing.assert_array_equal(opened[i], np.isin(few.clusters_, best))
    gaps = []
    for n_open in (1, 4, 10):
        part = HARAM(cluster_vigilance=0.6, open_clusters=n_open).fit(X, Y).predict_proba(Q)
        gaps.append(np.abs(part - exact).mean())
    assert gaps[0] > gaps[1] > gaps[2]


def test_features_are_brought_into_the_unit_cube(data):
    X, Y, Q = data
    factors, shift = np.array([1, 10, 100, 0.1, 1, 1]), np.array([0, 0, -50, 0, 0, 0])
    model = HARAM().fit(X * factors + shift, Y)
    scaled = model._scaled(X * factors + shift)
    assert scaled.min() >= 0
    assert scaled.max() == 1
    assert np.isfinite(model.predict_proba(1e6 * Q)).all()

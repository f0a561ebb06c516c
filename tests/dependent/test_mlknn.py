"""MLkNN against the paper's equations written as loops."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from labelweave.dependent.mlknn import MLkNN
from labelweave.exceptions import LabelweaveWarning


def posterior_by_loops(X, Y, Q, k, s):
    """Equations 3 to 7 of the paper, one row and one label at a time; NaN is unknown."""

    def count(order, label):
        known = [Y[i, label] for i in order if not np.isnan(Y[i, label])]
        return int(np.floor(k * sum(known) / len(known) + 0.5)) if known else None

    table = cdist(X, X).round(9)
    np.fill_diagonal(table, np.inf)
    train_order = np.argsort(table, axis=1, kind="stable")[:, :k]
    order = np.argsort(cdist(Q, X).round(9), axis=1, kind="stable")[:, :k]
    result = np.empty((len(Q), Y.shape[1]))
    for label in range(Y.shape[1]):
        rows = [i for i in range(len(X)) if not np.isnan(Y[i, label])]
        prior = (s + sum(Y[i, label] for i in rows)) / (2 * s + len(rows))
        seen = {0: [0] * (k + 1), 1: [0] * (k + 1)}
        for i in rows:
            c = count(train_order[i], label)
            if c is not None:
                seen[int(Y[i, label])][c] += 1
        for q in range(len(Q)):
            c = count(order[q], label)
            if c is None:
                result[q, label] = prior
                continue
            p1 = prior * (s + seen[1][c]) / (s * (k + 1) + sum(seen[1]))
            p0 = (1 - prior) * (s + seen[0][c]) / (s * (k + 1) + sum(seen[0]))
            result[q, label] = p1 / (p1 + p0)
    return result


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 18))
    Y = (X @ rng.normal(size=(18, 5)) + rng.normal(size=(120, 5)) > 0.7).astype(float)
    return X, Y, rng.normal(size=(40, 18))


@pytest.mark.parametrize("unknown", [0.0, 0.3, 0.9])
@pytest.mark.parametrize(("k", "s"), [(10, 1.0), (3, 0.5)])
def test_posterior_equals_the_equations(data, unknown, k, s):
    X, Y, Q = data
    Y[np.random.default_rng(2).random(Y.shape) < unknown] = np.nan
    expected = posterior_by_loops(X, Y, Q, k, s)
    probabilities = MLkNN(k=k, smoothing=s).fit(X, Y).predict_proba(Q)
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12)


def test_sparse_labels_and_many_blocks_give_the_same(data, monkeypatch):
    X, Y, Q = data
    expected = MLkNN().fit(X, Y).predict_proba(Q)
    monkeypatch.setattr("labelweave.dependent.mlknn._CHUNK_ENTRIES", 7 * 5)
    probabilities = MLkNN().fit(X, sp.csr_array(Y)).predict_proba(Q)
    np.testing.assert_array_equal(probabilities, expected)


def test_fewer_rows_than_neighbours():
    X, Y = np.eye(4), np.array([[1, 0], [1, 0], [0, 1], [0, 0]])
    with pytest.warns(LabelweaveWarning, match="k=10 neighbours of 4 rows"):
        model = MLkNN(k=10).fit(X, Y)
    assert model.k_ == 3
    one_row = MLkNN().fit(X[:1], Y[:1])
    np.testing.assert_allclose(one_row.predict_proba(X), np.tile([2 / 3, 1 / 3], (4, 1)))

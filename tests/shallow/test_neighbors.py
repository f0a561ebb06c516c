"""Neighbours against a full table of float64 distances."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from labelweave.exceptions import InputError
from labelweave.shallow.neighbors import NeighborSearch


def nearest_by_table(X, Q, k):
    """Sorted indices of the k nearest rows; of equal distances the first row wins."""
    among_themselves = Q is None
    table = cdist(X if among_themselves else Q, X)
    if among_themselves:
        np.fill_diagonal(table, np.inf)
    return np.sort(np.argsort(table.round(9), axis=1, kind="stable")[:, :k], axis=1)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("engine", ["matrix", "sklearn", "faiss"])
def test_every_engine_finds_the_nearest_rows(rng, engine):
    if engine == "faiss":
        pytest.importorskip("faiss")
    X, Q = rng.normal(size=(700, 20)), rng.normal(size=(90, 20))
    search = NeighborSearch(X, engine)
    np.testing.assert_array_equal(search.of(Q, 7), nearest_by_table(X, Q, 7))
    np.testing.assert_array_equal(search.among_themselves(7), nearest_by_table(X, None, 7))


@pytest.mark.parametrize("largest", [1, 3, 60, 3000])
@pytest.mark.parametrize("sparse", [False, True])
def test_counts_are_exact_and_ties_go_to_the_first_row(rng, largest, sparse):
    # Few different rows: most distances are tied. The four sizes take the four number types.
    X = rng.integers(0, largest + 1, size=(600, 6)) * (rng.random((600, 6)) < 0.5)
    Q = X[rng.permutation(600)[:80]]
    form = sp.csr_array if sparse else np.asarray
    search = NeighborSearch(form(X.astype(np.float32)), "matrix")
    queries = form(Q.astype(np.float32))
    np.testing.assert_array_equal(search.of(queries, 5), nearest_by_table(X, Q, 5))
    np.testing.assert_array_equal(search.among_themselves(5), nearest_by_table(X, None, 5))


def test_queries_that_are_no_counts_are_not_cut_to_integers(rng):
    X = rng.integers(0, 3, size=(300, 20)).astype(float)
    Q = rng.normal(size=(50, 20))
    nearest = NeighborSearch(sp.csr_array(X), "matrix").of(sp.csr_array(Q), 4)
    np.testing.assert_array_equal(nearest, nearest_by_table(X, Q, 4))


def test_neighbours_closer_than_float32_can_tell(rng):
    # Around 1000 a float32 has steps of 6e-5: the differences that decide here are smaller.
    X = np.vstack([rng.normal(size=(200, 20)), rng.normal(size=(200, 20)) + 1000])
    X[:200] = X[0] + 1e-6 * rng.normal(size=(200, 20))
    nearest = NeighborSearch(X, "matrix").among_themselves(3)
    table = cdist(X, X)
    np.fill_diagonal(table, np.inf)
    expected = np.sort(np.argsort(table, axis=1)[:, :3], axis=1)
    assert (nearest == expected).all(axis=1)[200:].all()
    # float64 with norms around 1e6 keeps about 1e-10 of a squared distance: some tie.
    assert set(nearest[:200].ravel()) <= set(range(200))


@pytest.mark.parametrize("engine", ["matrix", "sklearn", "faiss"])
def test_a_row_is_not_its_own_neighbour_but_its_duplicates_are(engine):
    if engine == "faiss":
        pytest.importorskip("faiss")
    X = np.repeat([[0.0], [1.0]], 4, axis=0)
    nearest = NeighborSearch(X, engine).among_themselves(3)
    for row, neighbours in enumerate(nearest):
        expected = set(range(4) if row < 4 else range(4, 8)) - {row}
        assert set(neighbours) == expected


def test_several_chunks_and_threads_agree(rng, monkeypatch):
    X = rng.normal(size=(500, 30))
    at_once = NeighborSearch(X, "matrix").among_themselves(5)
    monkeypatch.setattr("labelweave.shallow.neighbors._CHUNK_BYTES", 500 * 4 * 37)
    np.testing.assert_array_equal(NeighborSearch(X, "matrix", 2).among_themselves(5), at_once)


def test_no_query_gives_no_neighbour(rng):
    X = rng.normal(size=(30, 20))
    assert NeighborSearch(X, "matrix").of(X[:0], 3).shape == (0, 3)


def test_faiss_refuses_sparse_features(rng):
    pytest.importorskip("faiss")
    with pytest.raises(InputError, match="dense features only"):
        NeighborSearch(sp.csr_array(rng.random((5, 3))), "faiss")


def test_faiss_refuses_sparse_queries_and_squares_beyond_single_precision(rng):
    pytest.importorskip("faiss")
    search = NeighborSearch(rng.random((5, 3)), "faiss")
    with pytest.raises(InputError, match="dense features only"):
        search.of(sp.csr_array(rng.random((2, 3))), 2)
    with pytest.raises(InputError, match="too large for FAISS"):
        search.of(np.full((2, 3), 1.8e19), 2)
    far = np.vstack([np.zeros((4, 3)), np.full((1, 3), 1.8e19)])
    with pytest.raises(InputError, match="too large for FAISS"):
        NeighborSearch(far, "faiss").among_themselves(2)


def test_an_unknown_engine_is_named():
    with pytest.raises(InputError, match=r"'annoy'.*matrix, sklearn, faiss"):
        NeighborSearch(np.eye(3), "annoy")


@pytest.mark.parametrize(("value", "kind"), [(1, "uint8"), (40, "uint16")])
def test_counts_are_multiplied_as_small_integers(rng, value, kind):
    X = value * (rng.random((2500, 18)) < np.linspace(0.9, 0.1, 18))
    search = NeighborSearch(sp.csr_array(X.astype(np.float32)), "matrix")
    np.testing.assert_array_equal(search.among_themselves(4), nearest_by_table(X, None, 4))
    assert set(search._engine._cast) == {kind}


def test_distances_beyond_single_precision(rng):
    X = rng.normal(size=(50, 20))
    expected = NeighborSearch(X, "matrix").of(X[:7], 3)
    large = 1e19 * X
    assert np.array_equal(NeighborSearch(large, "matrix").of(large[:7], 3), expected)


def test_sparse_queries_among_dense_rows(rng):
    X = rng.normal(size=(50, 4))
    search = NeighborSearch(X)
    assert np.array_equal(search.of(sp.csr_array(X[:7]), 3), search.of(X[:7], 3))

"""Co-occurrence of known labels, against loops over rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.dependent._networks.label_graph import conditional_frequencies, cooccurrence_graph
from labelweave.labels import as_labels


def frequencies_by_loops(Y):
    n_labels = Y.shape[1]
    frequencies = np.zeros((n_labels, n_labels))
    for i in range(n_labels):
        for j in range(n_labels):
            if i == j:
                continue
            seen = [row[j] for row in Y if row[i] == 1 and not np.isnan(row[j])]
            frequencies[i, j] = np.mean(seen) if seen else 0
    return frequencies


def random_labels(unknown):
    rng = np.random.default_rng(0)
    Y = (rng.random((60, 7)) < 0.5).astype(np.float32)
    Y[rng.random(Y.shape) < unknown] = np.nan
    Y[:, 5] = 0
    return Y


@pytest.mark.parametrize("unknown", [0.0, 0.2, 0.8])
@pytest.mark.parametrize("form", ["dense", "sparse", "unstored is unknown"])
def test_frequencies_count_known_entries_only(unknown, form):
    Y = random_labels(unknown)
    labels = as_labels(Y)
    if form == "sparse":
        labels = labels.to_sparse()
    if form == "unstored is unknown":
        rows, columns = np.nonzero(~np.isnan(Y))
        stored = sp.coo_array((Y[rows, columns], (rows, columns)), shape=Y.shape)
        labels = as_labels(stored, absent="unknown")
    frequencies = conditional_frequencies(labels)
    np.testing.assert_allclose(frequencies.toarray(), frequencies_by_loops(Y), atol=1e-12)
    graph = cooccurrence_graph(labels).toarray()
    assert graph.dtype == bool
    np.testing.assert_array_equal(graph, (frequencies_by_loops(Y) > 0) | np.eye(7, dtype=bool))


def test_labels_that_never_meet_are_not_stored():
    Y = as_labels(np.eye(1000, dtype=np.float32)).to_sparse()
    assert conditional_frequencies(Y).nnz == 0
    assert cooccurrence_graph(Y).nnz == 1000
    few = as_labels([[1, np.nan], [np.nan, 1]])
    assert conditional_frequencies(few).nnz == 0

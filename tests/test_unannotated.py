"""Which entries nobody annotated."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.labels import as_labels
from labelweave.unannotated import as_observed, assume_negative

NAN = np.nan
MIXED = np.array([[1, 0, NAN], [NAN, 1, 0]], dtype=np.float32)
ONLY_POSITIVES = np.array([[1, NAN, NAN], [NAN, 1, NAN]], dtype=np.float32)


def forms(values):
    """The same labels dense, sparse, and sparse with unstored entries unknown."""
    rows, columns = np.nonzero(~np.isnan(values))
    stored = sp.coo_array((values[rows, columns], (rows, columns)), shape=values.shape).tocsr()
    return [
        as_labels(values),
        as_labels(sp.csr_array(values)),
        as_labels(stored, absent="unknown"),
    ]


@pytest.mark.parametrize(
    ("values", "rule", "codes"),
    [
        (MIXED, "zeros", MIXED),
        (MIXED, "auto", MIXED),
        (MIXED, "unknown", [[1, -1, 0], [0, 1, -1]]),
        (ONLY_POSITIVES, "auto", [[1, 0, 0], [0, 1, 0]]),
        (ONLY_POSITIVES, "unknown", [[1, 0, 0], [0, 1, 0]]),
        (ONLY_POSITIVES, "zeros", ONLY_POSITIVES),
    ],
)
def test_codes(values, rule, codes):
    for Y in forms(values):
        np.testing.assert_array_equal(as_observed(Y, rule).to_numpy(), codes)


def test_sparse_labels_stay_sparse():
    labels = forms(ONLY_POSITIVES)[2]
    assert as_observed(labels).is_sparse
    assert assume_negative(as_observed(labels)).is_sparse


def test_assumed_negatives():
    for Y in forms(MIXED):
        labels = assume_negative(as_observed(Y, "unknown")).to_numpy()
        np.testing.assert_array_equal(labels, [[1, 0, 0], [0, 1, 0]])
        np.testing.assert_array_equal(assume_negative(Y).to_numpy(), MIXED)

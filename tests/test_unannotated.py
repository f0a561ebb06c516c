"""Which entries nobody annotated."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.labels import LabelMatrix, as_labels
from labelweave.unannotated import as_observed, assume_negative, blank_unannotated, unannotated_rule

NAN = np.nan
MIXED = np.array([[1, 0, NAN], [NAN, 1, 0]], dtype=np.float32)
FILLED = np.array([[1, 0, 0], [0, 1, 0]], dtype=np.float32)
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
        (MIXED, "auto", [[1, -1, 0], [0, 1, -1]]),
        (MIXED, "unknown", [[1, -1, 0], [0, 1, -1]]),
        (FILLED, "auto", FILLED),
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


def test_one_blank_makes_all_zeros_checked_negatives():
    values = np.zeros((50, 4), np.float32)
    values[:, 0] = 1
    for Y in forms(values)[:2]:
        assert unannotated_rule(Y) == "zeros"
    values[7, 2] = NAN
    for Y in forms(values):
        assert unannotated_rule(Y) == "unknown"
        assert (as_observed(Y).to_numpy() == 0).sum() == 1


def test_blank_unannotated_entries_keep_known_negatives():
    codes = np.array([[1, 0, 0], [0, -1, 0]], dtype=np.float32)
    for values in (codes, sp.csr_array(codes)):
        observed = LabelMatrix(values, "abc")
        blank = blank_unannotated(observed, np.ones(3, dtype=bool))
        assert blank.is_sparse == observed.is_sparse
        np.testing.assert_array_equal(blank.to_numpy(), [[1, NAN, NAN], [NAN, 0, NAN]])
        np.testing.assert_array_equal(as_observed(blank).to_numpy(), codes)
        kept = blank_unannotated(observed, np.array([True, True, False])).to_numpy()
        np.testing.assert_array_equal(kept, [[1, NAN, 0], [NAN, 0, 0]])

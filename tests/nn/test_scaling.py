"""Scaling of features: what it gives, and that storage does not matter."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

from labelweave.exceptions import InputError
from labelweave.nn.scaling import fit_scaling


def scaled(X, how):
    return fit_scaling(X, how).apply(torch.from_numpy(X.astype(np.float32))).numpy()


def test_standard_gives_mean_zero_and_variance_one():
    X = np.random.default_rng(0).normal(5, 3, (200, 4))
    X[:, 2] = 0.1  # a feature that never changes
    standard = scaled(X, "standard")
    np.testing.assert_allclose(standard.mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(standard.std(axis=0), [1, 1, 0, 1], atol=1e-5)


def test_max_abs_keeps_zeros():
    X = np.array([[0.0, -4.0, 0.0], [2.0, 1.0, 0.0]])
    np.testing.assert_array_equal(scaled(X, "max-abs"), [[0, -1, 0], [1, 0.25, 0]])


def test_auto_looks_at_the_share_of_non_zero_entries():
    rng = np.random.default_rng(0)
    full, thin = rng.random((50, 8)), rng.random((50, 8)) * (rng.random((50, 8)) < 0.1)
    for X, how in ((full, "standard"), (thin, "max-abs")):
        for stored in (X, sp.csr_array(X)):
            scaling, expected = fit_scaling(stored, "auto"), fit_scaling(X, how)
            torch.testing.assert_close(scaling.factor, expected.factor)
            torch.testing.assert_close(scaling.shift, expected.shift)


def test_none_and_unknown_scales():
    assert fit_scaling(np.eye(2), "none") is None
    with pytest.raises(InputError, match="there is no scale 'z'"):
        fit_scaling(np.eye(2), "z")


def test_auto_leaves_rows_of_length_one_as_they_are():
    rng = np.random.default_rng(0)
    words = rng.random((40, 30)) * (rng.random((40, 30)) < 0.1)
    lengths = np.linalg.norm(words, axis=1, keepdims=True)
    words = np.divide(words, lengths, where=lengths > 0, out=np.zeros_like(words))
    words[3] = 0  # a text without known words
    for stored in (words, sp.csr_array(words)):
        assert fit_scaling(stored, "auto") is None
        assert fit_scaling(stored * 2, "auto") is not None
    assert fit_scaling(np.zeros((3, 4)), "auto") is not None
    dense = np.full((5, 4), 0.5)  # length one, but not sparse
    torch.testing.assert_close(fit_scaling(dense, "auto").shift, torch.full((4,), 0.5))


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
def test_squares_beyond_single_precision(form):
    X = np.array([[1e30, 1.0], [-1e30, 3.0]], dtype=np.float32)
    assert fit_scaling(form(X), "standard").factor.tolist() == pytest.approx([1e-30, 1.0])

"""Linear classifiers of many labels at once: those that liblinear finds one at a time."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import LinearSVC

from labelweave.shallow.squared_hinge import squared_hinge_weights


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = sp.random_array((400, 60), density=0.1, rng=rng, format="csr", dtype=np.float32)
    signs = np.where((X @ rng.normal(size=(60, 5))) + rng.normal(size=(400, 5)) / 4 > 0.2, 1, -1)
    return X, signs.astype(np.float32)


@pytest.mark.parametrize("C", [0.3, 1.0, 10.0])
def test_the_weights_are_those_of_liblinear(rows, C):
    X, signs = rows
    weights = squared_hinge_weights(X, signs, C, tol=1e-4, max_iter=100)
    for j in range(signs.shape[1]):
        model = LinearSVC(C=C, dual=False, fit_intercept=False, tol=1e-8).fit(X, signs[:, j])
        np.testing.assert_allclose(weights[:, j], model.coef_[0], atol=2e-3 * C)


def test_a_sign_of_zero_leaves_the_row_out(rows):
    X, signs = rows
    some = signs.copy()
    some[:100] = 0
    left_out = squared_hinge_weights(X, some, tol=1e-4, max_iter=100)
    alone = squared_hinge_weights(X[100:], signs[100:], tol=1e-4, max_iter=100)
    np.testing.assert_allclose(left_out, alone, atol=1e-3)

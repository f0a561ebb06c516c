"""LS-SVM: against a slow ridge regression, row by row."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit

import labelweave as lw
from labelweave.data.splits import split_dataset
from labelweave.dependent.ls_svm import LSSVM, PENALTIES, _kernel, _Solution
from labelweave.exceptions import InputError
from labelweave.metrics import get_metric


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] * X[:, 2] > 0, X[:, 0] + X[:, 1] > 1])
    return X, Y.astype(float)


def slow_kernel(x, z, kernel, width):
    distance = ((x - z) ** 2).sum()
    return {
        "exponential": np.exp(-np.sqrt(width * distance)),
        "rbf": np.exp(-width * distance),
        "linear": width * (x @ z),
    }[kernel]


@pytest.mark.parametrize("kernel", ["exponential", "rbf", "linear"])
def test_kernels(rows, kernel):
    X = rows[0]
    expected = [[slow_kernel(x, z, kernel, 0.7) for z in X[:4]] for x in X[:6]]
    np.testing.assert_allclose(_kernel(X[:6], X[:4], kernel, 0.7), expected)
    sparse = _kernel(sp.csr_array(X[:6]), sp.csr_array(X[:4]), kernel, 0.7)
    np.testing.assert_allclose(sparse, expected)


def test_weights_are_those_of_ridge_regression(rows):
    X, Y = rows
    targets = Y - Y.mean(axis=0)
    solution = _Solution(X, X, targets, "rbf", 0.3)
    K = _kernel(X, X, "rbf", 0.3)
    expected = np.linalg.solve(K + 0.1 * np.eye(len(X)), targets)
    np.testing.assert_allclose(K @ solution.weights(0.1), K @ expected, atol=1e-4)


@pytest.mark.parametrize("n_centres", [40, 10])
def test_values_of_rows_left_out(rows, n_centres):
    """Each row by a solution fitted without it, among the same centres."""
    X, Y = rows
    targets, centres = Y - Y.mean(axis=0), X[:n_centres]
    predictions = _Solution(X, centres, targets, "exponential", 0.5).leave_one_out(0.3)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        alone = _Solution(X[rest], centres, targets[rest], "exponential", 0.5).weights(0.3)
        value = _kernel(X[i : i + 1], centres, "exponential", 0.5) @ alone
        np.testing.assert_allclose(predictions[i], value[0], atol=1e-6)


def test_the_penalty_is_the_best_on_rows_left_out(rows):
    X, Y = rows
    Y = Y.copy()
    Y[:5, 0] = np.nan
    targets = np.nan_to_num(Y - np.nanmean(Y, axis=0))
    solution = _Solution(X, X, targets, "rbf", 0.3)
    errors = [
        np.nanmean((solution.leave_one_out(p) - (Y - np.nanmean(Y, axis=0))) ** 2)
        for p in PENALTIES
    ]
    assert solution.best(Y) == pytest.approx((min(errors), PENALTIES[np.argmin(errors)]))


def test_log_odds_are_a_sum_over_centres(rows):
    X, Y = rows
    model = LSSVM(kernel="rbf", n_centres=15, scale="none", random_state=0).fit(X, Y)
    assert model.centres_.shape == (15, 3)
    values = [[slow_kernel(x, z, "rbf", model.width_) for z in model.centres_] for x in X]
    expected = expit(np.array(values) @ model.weights_ + model.intercept_)
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-6)


def test_it_finds_what_no_linear_model_does():
    X = np.random.default_rng(1).normal(size=(300, 2))
    Y = np.column_stack([X[:, 0] * X[:, 1] > 0, X[:, 0] > 0])
    model = LSSVM(random_state=0).fit(X[:200], Y[:200])
    assert model.kernel_ != "linear"
    assert get_metric("f1_macro")(Y[200:], Y_pred=model.predict(X[200:])) > 0.85
    blind = lw.make("br").fit(X[:200], Y[:200])
    assert get_metric("f1_macro")(Y[200:], Y_pred=blind.predict(X[200:])) < 0.85


def test_scale(rows):
    X, Y = rows
    assert LSSVM().fit(X * [1, 100, 1], Y).factor_ is not None
    counts = (np.random.default_rng(0).random((40, 30)) < 0.1).astype(float)
    dense, sparse = (LSSVM(random_state=0).fit(A, Y) for A in (counts, sp.csr_array(counts)))
    assert dense.by_length_
    assert sparse.by_length_
    np.testing.assert_allclose(dense.predict_proba(counts), sparse.predict_proba(counts))


def test_single_precision():
    """Many rows that are nearly alike: rounded, their kernel would not be positive definite."""
    X = np.random.default_rng(0).normal(size=(400, 2)).astype(np.float32)
    Y = X > 0
    probabilities = LSSVM("rbf", random_state=0).fit(X, Y).predict_proba(X)
    other = LSSVM("rbf", random_state=0).fit(X.astype(np.float64), Y).predict_proba(X)
    np.testing.assert_allclose(probabilities, other, atol=1e-3)


def test_features_far_from_zero(rows):
    X, Y = np.tile(rows[0], (8, 1)), np.tile(rows[1], (8, 1))
    near = LSSVM(random_state=0).fit(X, Y).predict_proba(X)
    far = X + np.array([0, 1e9, 0])
    np.testing.assert_allclose(
        LSSVM(random_state=0).fit(far, Y).predict_proba(far), near, atol=1e-3
    )
    with pytest.raises(InputError, match="lost to rounding"):
        LSSVM(scale="none", random_state=0).fit(far, Y)


@pytest.mark.data
def test_it_beats_binary_relevance_on_scene(data_home):
    """On a third of the training rows, held out."""
    rows, _ = lw.load_dataset("scene").split()
    train, held = split_dataset(rows, test_size=1 / 3, method="stratified", random_state=0)
    scores = {
        name: get_metric("map")(
            held.Y, Y_score=lw.make(name).fit(train.X, train.Y).predict_proba(held.X)
        )
        for name in ("ls-svm", "br")
    }
    assert scores["ls-svm"] > scores["br"] + 0.05

"""Checks of X: its forms and number types, what is refused, and that inputs are not changed."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.testing.check_tools import Check, fresh, linear, refused, same, trained


def check_sparse_equals_dense(estimator: Any) -> None:
    """Sparse formats and dense arrays of the same numbers give the same model."""
    X, Y = linear()
    fitted = fresh(estimator).fit(X, Y)
    expected = fitted.predict_proba(X)
    same(fitted.predict_proba(sp.csr_array(X)), expected, "fitted to an array, predicting sparse")
    for form in (sp.csr_array, sp.csc_array, sp.csr_matrix):
        model = fresh(estimator).fit(form(X), Y)
        same(model.predict_proba(form(X)), expected, f"X as {form.__name__}")
        same(model.predict_proba(X), expected, f"fitted to {form.__name__}, predicting an array")


def check_forms_of_x(estimator: Any) -> None:
    """DataFrames, lists, single precision and column order mean the same numbers."""
    import pandas as pd

    X, Y = linear()
    X = X.astype(np.float32).astype(np.float64)  # so that both precisions hold it exactly
    expected = fresh(estimator).fit(X, Y).predict_proba(X)
    forms = {
        "DataFrame": pd.DataFrame(X, columns=list("abcdef")),
        "lists": X.tolist(),
        "float32": X.astype(np.float32),
        "column order": np.asfortranarray(X),
        "every second row": np.repeat(X, 2, axis=0)[::2],
    }
    for form, value in forms.items():
        model = fresh(estimator).fit(value, Y)
        same(model.predict_proba(value), expected, f"X as {form}")
    # Some of the integers are too large for single precision to tell apart.
    counts = np.round(3 * X).astype(int) + 1_700_000_000 * np.array([0, 0, 0, 0, 0, 1])
    as_floats = fresh(estimator).fit(counts.astype(float), Y).predict_proba(counts.astype(float))
    same(fresh(estimator).fit(counts, Y).predict_proba(counts), as_floats, "X of integers")


def check_nan_and_infinite_x_is_refused(estimator: Any) -> None:
    """In fit and in predict, dense and sparse, the message names the row and the column.

    A method with the capability `missing_values` takes NaN in dense arrays.
    """
    X, Y = linear()
    model = trained(estimator)
    takes_nan = capabilities(estimator).missing_values
    for value, word in ((np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")):
        bad = X.copy()
        bad[5, 3] = value
        if word == "NaN" and takes_nan:
            assert np.isfinite(fresh(estimator).fit(bad, Y).predict_proba(bad)).all()
        dense = () if word == "NaN" and takes_nan else (bad, bad.astype(np.float32))
        for form in (*dense, sp.csr_array(bad)):
            with refused(f"{word} in fit", word, "row 5", "column 3", error=InputError):
                fresh(estimator).fit(form, Y)
            with refused(f"{word} in predict", word, "row 5", "column 3", error=InputError):
                model.predict_proba(form)


def check_wrong_width_is_refused(estimator: Any) -> None:
    """Another number of columns, one dimension, and no rows are refused."""
    X, Y = linear()
    model = trained(estimator)
    for wrong in (X[:, :5], np.hstack([X, X]), sp.csr_array(X[:, :5])):
        with refused("X of another width", str(wrong.shape[1]), "6"):
            model.predict_proba(wrong)
    with refused("X with one dimension"):
        model.predict_proba(X[0])
    with refused("X without rows"):
        fresh(estimator).fit(X[:0], Y[:0])


def check_extreme_scales(estimator: Any) -> None:
    """Huge and tiny scales and a constant column give finite probabilities."""
    X, Y = linear()
    X *= np.array([1e-8, 1e-3, 1, 1e3, 1e6, 0])
    assert np.isfinite(fresh(estimator).fit(X, Y).predict_proba(X)).all()


def check_large_numbers(estimator: Any) -> None:
    """Numbers up to 2**64 have finite probabilities, in fit and in predict, dense and sparse.

    Larger ones are refused with an error that names the row, the column and what to do.
    """
    X, Y = linear()
    model = trained(estimator)
    for largest in (1e10, 1e18, 2.0**64):  # nanoseconds since 1970 are about 1.8e18
        large = X * (largest / np.abs(X).max())
        outlier = X.copy()
        outlier[5:7, 3] = largest, -largest
        for form in (large, large.astype(np.float32), sp.csr_array(large.astype(np.float32))):
            assert np.isfinite(fresh(estimator).fit(form, Y).predict_proba(form)).all()
        for form in (large, outlier, outlier.astype(np.float32), sp.csr_array(outlier)):
            assert np.isfinite(model.predict_proba(form)).all()
    for too_large in (1e20, -1e39, 1e300):
        bad = X.copy()
        bad[5, 3] = too_large
        for form in (bad, sp.csr_array(bad)):
            words = (f"{too_large:.4g}", "row 5", "column 3", "scale or clip")
            with refused(f"{too_large} in fit", *words, error=InputError):
                fresh(estimator).fit(form, Y)
            with refused(f"{too_large} in predict", *words, error=InputError):
                model.predict_proba(form)


def check_constant_features(estimator: Any) -> None:
    """Features that are the same in every row give finite probabilities."""
    X, Y = linear()
    for form in (np.ones_like(X), np.zeros_like(X), sp.csr_array(X.shape)):
        assert np.isfinite(fresh(estimator).fit(form, Y).predict_proba(form)).all()


def check_few_rows(estimator: Any) -> None:
    """One, two and five rows either work or are refused with an error that names the number."""
    X, Y = linear()
    for n_rows in (1, 2, 5):
        try:
            model = fresh(estimator).fit(X[:n_rows], Y[:n_rows])
        except InputError as refusal:
            if str(n_rows) not in str(refusal):
                raise AssertionError(f"it does not name the rows: {refusal}") from refusal
            continue
        probabilities = model.predict_proba(X)
        assert probabilities.shape == Y.shape
        assert np.isfinite(probabilities).all()


def check_inputs_are_left_alone(estimator: Any) -> None:
    """Neither X nor Y nor the rows to predict are changed."""
    X, Y = linear()
    Y = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    makers: tuple[Any, ...] = (np.array, sp.csr_array)
    for make in makers:
        X_train, Y_train, X_test = make(X), make(Y), make(X[:9])
        fresh(estimator, threshold="top-1").fit(X_train, Y_train).predict(X_test)
        for after, before in ((X_train, X), (Y_train, Y), (X_test, X[:9])):
            after = after.toarray() if sp.issparse(after) else after
            assert np.array_equal(after, before, equal_nan=True), "an input was changed"


def check_read_only_memory_maps(estimator: Any) -> None:
    """Read-only memory maps work: joblib passes large arrays to its workers as such."""
    X, Y = linear()
    expected = fresh(estimator).fit(X, Y).predict_proba(X)
    with tempfile.TemporaryDirectory() as folder:
        mapped = []
        for name, values in (("X", X), ("Y", Y)):
            np.save(Path(folder) / f"{name}.npy", values)
            mapped.append(np.load(Path(folder) / f"{name}.npy", mmap_mode="r"))
        model = fresh(estimator).fit(*mapped)
        same(model.predict_proba(mapped[0]), expected, "memory maps")
        del mapped
    same(model.predict_proba(X), expected, "after the memory maps are gone")


CHECKS = (
    Check(check_sparse_equals_dense, of_variants=True),
    Check(check_forms_of_x),
    Check(check_nan_and_infinite_x_is_refused),
    Check(check_wrong_width_is_refused),
    Check(check_extreme_scales, trains=True, of_variants=True),
    Check(check_large_numbers, of_variants=True),
    Check(check_constant_features, of_variants=True),
    Check(check_few_rows, of_variants=True),
    Check(check_inputs_are_left_alone, of_variants=True),
    Check(check_read_only_memory_maps),
)

"""Checks of label names, forms of Y, unknown entries and labels with few examples."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from labelweave.capabilities import capabilities
from labelweave.labels import as_labels
from labelweave.testing.check_tools import (
    NAMES,
    Check,
    fresh,
    hidden,
    linear,
    refused,
    same,
    trained,
)


def check_names_follow_columns(estimator: Any) -> None:
    """Columns whose names are not sorted are learnt as these labels, in this order."""
    X, Y = linear()
    model = trained(estimator)
    assert list(model.label_names_) == list(NAMES)
    probabilities = model.predict_proba(X)
    for j, name in enumerate(NAMES):
        for k, other in enumerate(NAMES):
            area = roc_auc_score(Y[:, k], probabilities[:, j])
            right = area > 0.8 if j == k else area < 0.8
            assert right, f"column {name!r} ranks the rows of {other!r} with AUC {area:.2f}"


def check_all_forms_of_y_give_the_same_model(estimator: Any) -> None:
    """Arrays, DataFrames, sparse matrices, lists of names and LabelMatrix mean the same."""
    import pandas as pd

    X, Y = linear()
    labels = as_labels(Y, names=sorted(NAMES))
    expected = fresh(estimator).fit(X, Y).predict_proba(X)
    forms = {
        "float array": Y.astype(float),
        "bool array": Y.astype(bool),
        "DataFrame": pd.DataFrame(Y, columns=sorted(NAMES)),
        "nullable DataFrame": pd.DataFrame(Y, columns=sorted(NAMES)).astype("Int8"),
        "csr_array": sp.csr_array(Y),
        "csc_matrix": sp.csc_matrix(Y),
        "lists of names": labels.to_lists(),
        "LabelMatrix": labels,
        "sparse LabelMatrix": labels.to_sparse(),
    }
    for form, value in forms.items():
        same(fresh(estimator).fit(X, value).predict_proba(X), expected, f"Y as {form}")


def check_all_forms_of_unknown_give_the_same_model(estimator: Any) -> None:
    """NaN, masked entries, pandas NA and unstored entries declared unknown mean the same."""
    import pandas as pd

    X, Y = linear()
    unknown = np.random.default_rng(0).random(Y.shape) < 0.3
    Y = np.where(unknown, np.nan, Y)
    expected = fresh(estimator).fit(X, Y).predict_proba(X)
    rows, columns = np.nonzero(~unknown)
    stored = sp.coo_array((Y[rows, columns], (rows, columns)), shape=Y.shape).tocsr()
    forms = {
        "masked array": np.ma.array(np.nan_to_num(Y, nan=1), mask=unknown),
        "DataFrame with NA": pd.DataFrame(Y).astype("Int8").rename(columns=str),
        "sparse NaN": sp.csr_array(Y),
        "unstored entries": as_labels(stored, absent="unknown"),
    }
    for form, value in forms.items():
        same(fresh(estimator).fit(X, value).predict_proba(X), expected, f"unknowns as {form}")


def check_unknown_is_not_negative(estimator: Any) -> None:
    """Hiding positives as NaN costs less probability than calling them negatives."""
    _check_hidden(estimator, state=1, wrong=0)


def check_unknown_is_not_positive(estimator: Any) -> None:
    """Hiding negatives as NaN adds less probability than calling them positives."""
    _check_hidden(estimator, state=0, wrong=1)


def _check_hidden(estimator: Any, state: int, wrong: int) -> None:
    X, Y = linear(90)
    where = hidden(Y, state=state, label=0)
    if "unannotated" in estimator.get_params(deep=False):
        # Methods for partial labels ignore NaN where zeros are the unannotated entries. Elsewhere
        # NaN is unannotated, which some of them do train as a negative.
        estimator = fresh(estimator, unannotated="zeros")
    as_unknown = fresh(estimator).fit(X, np.where(where, np.nan, Y)).predict_proba(X)[:, 0]
    as_wrong = fresh(estimator).fit(X, np.where(where, wrong, Y)).predict_proba(X)[:, 0]
    sign = 1 if state == 1 else -1
    gain = sign * float((as_unknown - as_wrong)[where[:, 0]].mean())
    assert gain > 0.02, f"on the hidden entries NaN differs from {wrong} by only {gain:.3f}"
    area = roc_auc_score(Y[:, 0], as_unknown)
    assert area > 0.75, f"with hidden entries the label is ranked with AUC {area:.2f} only"


def check_a_label_without_known_entry_is_named(estimator: Any) -> None:
    """A label whose entries are all NaN is refused, or learnt with a warning, by its name."""
    X, Y = linear()
    Y = Y.astype(float)
    Y[:, 1] = np.nan
    if not capabilities(estimator).blank_labels:
        with refused("a label that is all NaN", "'sun'"):
            fresh(estimator).fit(X, as_labels(Y, names=NAMES))
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = fresh(estimator).fit(X, as_labels(Y, names=NAMES))
    assert any("'sun'" in str(warning.message) for warning in caught), (
        "no warning names a label that is all NaN"
    )
    assert not model.predict(X)[:, 1].any(), "a label that is all NaN is predicted"
    with refused("labels that are all NaN", "'sea'"):
        fresh(estimator).fit(X, as_labels(np.full(Y.shape, np.nan), names=NAMES))


def check_wrong_labels_are_refused(estimator: Any) -> None:
    """Values other than 1, 0 and NaN, and wrong shapes, are refused."""
    X, Y = linear()
    wrong = Y.copy()
    wrong[7, 2] = 2
    with refused("the value 2", "row 7", "label_2"):
        fresh(estimator).fit(X, wrong)
    with refused("the value 2 in a sparse matrix", "row 7", "label_2"):
        fresh(estimator).fit(X, sp.csr_array(wrong))
    with refused("half a label", "0.5"):
        fresh(estimator).fit(X, Y * 0.5)
    with refused("a Y with a row less"):
        fresh(estimator).fit(X, Y[:-1])
    with refused("a Y without labels"):
        fresh(estimator).fit(X, Y[:, :0])
    with refused("three dimensions"):
        fresh(estimator).fit(X, Y[:, :, None])
    with refused("no Y"):
        fresh(estimator).fit(X, None)


def check_one_label(estimator: Any) -> None:
    """A matrix of one label is learnt, and predictions have one column."""
    X, Y = linear()
    model = fresh(estimator).fit(X, Y[:, :1])
    assert model.predict_proba(X).shape == (len(X), 1)
    assert model.predict(X).shape == (len(X), 1)
    assert roc_auc_score(Y[:, 0], model.predict_proba(X)[:, 0]) > 0.8


def check_labels_with_one_state_only(estimator: Any) -> None:
    """A label never positive is improbable, one always positive probable; others are learnt."""
    X, Y = linear()
    Y[:, 0], Y[:, 1] = 0, 1
    model = fresh(estimator).fit(X, Y)
    probabilities = model.predict_proba(X)
    assert np.isfinite(probabilities).all()
    assert probabilities[:, 0].mean() < 0.5, "a label never positive is called probable"
    assert probabilities[:, 1].mean() > 0.5, "a label always positive is called improbable"
    assert roc_auc_score(Y[:, 2], probabilities[:, 2]) > 0.8


def check_a_label_with_few_known_entries(estimator: Any) -> None:
    """A label with one known entry does not make the fit fail."""
    X, Y = linear()
    Y = Y.astype(float)
    Y[1:, 0] = np.nan
    assert np.isfinite(fresh(estimator).fit(X, Y).predict_proba(X)).all()


def check_rows_without_labels(estimator: Any) -> None:
    """Rows without any label are training rows like others."""
    X, Y = linear()
    Y[:20] = 0
    model = fresh(estimator).fit(X, Y)
    without = fresh(estimator).fit(X[20:], Y[20:])
    with_rows, without_rows = model.predict_proba(X[:20]), without.predict_proba(X[:20])
    assert with_rows.mean() < without_rows.mean(), "rows without labels seem to be left out"


def check_no_row_with_labels(estimator: Any) -> None:
    """Where no row has a label, every label is improbable."""
    X, Y = linear()
    probabilities = fresh(estimator).fit(X, np.zeros_like(Y)).predict_proba(X)
    assert np.isfinite(probabilities).all()
    assert probabilities.mean() < 0.5


CHECKS = (
    Check(check_names_follow_columns, trains=True, of_variants=True),
    Check(check_all_forms_of_y_give_the_same_model),
    Check(check_all_forms_of_unknown_give_the_same_model),
    Check(check_unknown_is_not_negative, trains=True, of_variants=True),
    Check(check_unknown_is_not_positive, trains=True, of_variants=True),
    Check(check_a_label_without_known_entry_is_named),
    Check(check_wrong_labels_are_refused),
    Check(check_one_label, trains=True, of_variants=True),
    Check(check_labels_with_one_state_only, trains=True, of_variants=True),
    Check(check_a_label_with_few_known_entries, of_variants=True),
    Check(check_rows_without_labels, trains=True, of_variants=True),
    Check(check_no_row_with_labels, of_variants=True),
)

"""Typical values of columns."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from explained_models import mixed_table

from labelweave.exceptions import InputError
from labelweave.explaining import explain_row, reference_rows
from labelweave.explaining.reference import reference_from_plain, reference_to_plain
from labelweave.tables import Table


def test_numbers_are_quantiles_and_blanks_come_in_proportion():
    X = np.arange(100.0)[:, None]
    np.testing.assert_allclose(reference_rows(X)[:, 0], [9.9, 29.7, 49.5, 69.3, 89.1])
    X[60:] = np.nan
    values = reference_rows(X)[:, 0]
    assert np.isnan(values).sum() == 2
    assert np.nanmax(values) < 59


def test_categories_come_in_proportion_and_rare_values_are_not_kept():
    frame = pd.DataFrame(
        {
            "brand": ["a"] * 60 + ["b"] * 36 + ["rare"] * 4,
            "name": [f"person {k}" for k in range(100)],
            "date": [f"2024-{1 + k // 28:02}-{1 + k % 28:02}" for k in range(100)],
            "text": ["a few words that ten rows have", "other words are here"] * 50,
            "yes": [True] * 40 + [False] * 60,
        }
    )
    reference = reference_rows(frame)
    assert reference["brand"].tolist() == ["a", "a", "a", "b", "b"]
    assert reference["name"].isna().all()
    frame["text"] = [f"{text} {k % 20}" for k, text in enumerate(frame["text"])]
    assert reference_rows(frame)["text"].isna().all()
    assert reference["date"].is_monotonic_increasing
    assert reference["date"].tolist()[2] == frame["date"][50]
    assert sorted(reference["yes"].map(str)) == ["False", "False", "False", "True", "True"]


def test_they_explain_about_as_well_as_rows(mixed):
    model, X, _ = mixed
    reference = reference_rows(mixed_table()[0][:160])
    by_rows = explain_row(model, X.iloc[:1], X, labels=["cheap", "acme"])
    by_reference = explain_row(model, X.iloc[:1], reference, labels=["cheap", "acme"])
    strong = np.abs(by_rows.changes) > 0.1
    assert strong.any()
    np.testing.assert_array_equal(
        np.sign(by_rows.changes[strong]), np.sign(by_reference.changes[strong])
    )


@pytest.mark.parametrize("form", ["array", "sparse", "frame", "Table"])
def test_they_are_stored_as_json(form):
    frame, _ = mixed_table()
    numbers = frame[["noise"]].to_numpy()
    X = {"array": numbers, "sparse": sp.csr_array(numbers), "frame": frame, "Table": Table(frame)}
    reference = reference_rows(X[form])
    again = reference_from_plain(json.loads(json.dumps(reference_to_plain(reference))))
    if form == "array":
        np.testing.assert_array_equal(again, reference)
    elif form == "sparse":
        assert again.shape == (1, 1)
        assert again.nnz == 0
    else:
        stored = reference.frame if form == "Table" else reference
        pd.testing.assert_frame_equal(again, stored, check_dtype=False)


@pytest.mark.parametrize(
    "stored",
    [
        {"kind": "table", "columns": {"a": [{}]}},
        {"kind": "table", "columns": {"a": []}},
        {"kind": "table", "columns": {"a": [1.0], "b": "x"}},
        {"kind": "table", "columns": {"a": [1.0], "b": {"x": 1.0}}},
        {"kind": "table", "columns": {"a": [1.0], "b": [1.0, 2.0]}},
        {"kind": "?", "columns": {}},
        {"kind": "array", "rows": [1]},
    ],
)
def test_damaged_values_are_refused(stored):
    with pytest.raises((ValueError, KeyError)):
        reference_from_plain(stored)


def test_wide_tables_are_not_stored():
    assert reference_to_plain(np.zeros((2, 5001))) is None


def test_wrong_arguments():
    with pytest.raises(InputError, match="n_rows must be at least 1"):
        reference_rows(np.zeros((2, 2)), 0)
    with pytest.raises(InputError, match="a table"):
        reference_rows(["a text"])

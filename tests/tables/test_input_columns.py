"""The columns that models expect, and records of values without types."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.rows import concatenate_features
from labelweave.tables.input_columns import columns_of_steps, new_categories, read_records
from product_table import product_columns, product_table

FRAME, LABELS = product_table()


def kinds_of(step):
    """Kind of each column, with ? where it may be blank and ?? where it may be absent."""
    marks = [("?" if c.may_be_blank else "") + ("?" if c.may_be_absent else "") for c in step]
    return {c.name: c.kind + mark for c, mark in zip(step, marks, strict=True)}


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        (product_columns(), {"title": "text", "price": "number??", "brand": "category??"}),
        (product_columns(lw.TfidfEmbedder()), {"title": "text"}),
        (lw.TableEncoder(), {"title": "text?", "price": "number??", "added": "date?"}),
        (
            make_column_transformer(
                (make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()), ["brand"])
            ),
            {"brand": "category??", "price": "not used??"},
        ),
        (
            make_column_transformer(
                (StandardScaler(), ["price"]), (FunctionTransformer(), ["brand"]), ("drop", ["new"])
            ),
            {"price": "number", "brand": "any?", "new": "not used??"},
        ),
        (
            FeatureUnion([("hand", product_columns()), ("found", lw.TableEncoder())]),
            {"title": "text", "brand": "category??", "new": "category", "added": "date?"},
        ),
    ],
    ids=["columns", "embedder", "encoder", "filled", "functions", "union"],
)
def test_kinds_follow_from_the_transformers(step, expected):
    kinds = kinds_of(columns_of_steps(step.fit(FRAME, LABELS)))
    assert {name: kinds[name] for name in expected} == expected


def test_without_names_there_are_no_columns():
    assert columns_of_steps(StandardScaler().fit(np.eye(3))) is None


def test_none_stands_for_a_blank_where_it_did_in_training():
    for blank in (None, np.nan):
        frame = pd.DataFrame({"brand": pd.Series(["a", "b", blank], dtype=object)})
        encoder = OneHotEncoder(sparse_output=False).fit(frame)
        rows = read_records([{"brand": None}], columns_of_steps(encoder)).frame
        assert encoder.transform(rows).tolist() == encoder.transform(frame[2:]).tolist()


def test_numbers_that_are_categories():
    encoder = OneHotEncoder().fit(pd.DataFrame({"size": [36, 38, 40]}))
    columns = columns_of_steps(encoder)
    assert read_records([{"size": 38}], columns).frame["size"].tolist() == [38]
    with pytest.raises(InputError, match=r"row\.0\.size must be a number, not the text '38'"):
        read_records([{"size": "38"}], columns)
    stored = lw.TableEncoder({"size": "category"}).fit(pd.DataFrame({"size": [36, 38, 38, 36]}))
    assert new_categories(
        [{"size": 38}, {"size": 36.0}, {"size": "40"}], columns_of_steps(stored)[0]
    ) == [2]


def test_records_are_reported_already():
    columns = columns_of_steps(lw.TableEncoder().fit(FRAME))
    record = {"title": "a", "new": "no", "added": "2024-01-01"}
    tables = [read_records([record], columns) for _ in range(2)]
    assert all(table.reported for table in tables)
    assert concatenate_features(tables).reported

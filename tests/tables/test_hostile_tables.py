"""Any table gives a model or one clear sentence, and nothing is left out without a word."""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import labelweave as lw
from labelweave.exceptions import InputError

CELLS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=10**30, max_value=10**400),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=12),
    st.sampled_from(
        ["", " ", "yes", "no", "2024-02-30", "2024-02-03", "1,5", "NaN", "inf", "1e400"]
    ),
    st.dates(),
    st.datetimes(),
    st.decimals(allow_nan=False),
    st.binary(max_size=3),
    st.just(pd.NaT),
    st.just(pd.NA),
    st.lists(st.integers(), max_size=2),
)
COLUMN_CELLS = st.one_of(
    st.just(CELLS),
    st.sampled_from(
        [
            st.floats(allow_nan=True, allow_infinity=False),
            st.one_of(st.none(), st.sampled_from(["a", "b", "é", "\u202e"])),
            st.one_of(st.none(), st.dates()),
            st.text(max_size=60),
            st.booleans(),
            st.integers(-(2**62), 2**62),
        ]
    ),
)
NAMES = st.one_of(st.text(max_size=5), st.sampled_from(["a", "id", "a=b"]), st.integers(0, 3))


@st.composite
def tables(draw):
    n_rows = draw(st.sampled_from([0, 1, 2, 8, 12]))
    n_columns = draw(st.integers(0, 4))
    columns = []
    for _ in range(n_columns):
        cells = draw(st.lists(draw(COLUMN_CELLS), min_size=n_rows, max_size=n_rows))
        series = pd.Series(cells, dtype=object)
        columns.append(series.infer_objects() if draw(st.booleans()) else series)
    frame = pd.concat(columns, axis=1) if columns else pd.DataFrame(index=range(n_rows))
    frame.columns = draw(st.lists(NAMES, min_size=n_columns, max_size=n_columns))
    return frame


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(tables(), st.sampled_from(["mlknn", "boosted-trees"]))
def test_a_model_or_one_sentence(frame, method):
    model = lw.make(method, **{"mlknn": {"k": 1}, "boosted-trees": {"max_iter": 2}}[method])
    Y = np.arange(2 * len(frame)).reshape(-1, 2) // 2 % [2, 3] == 0
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        try:
            model.fit(frame, Y.astype(float))
        except InputError:
            return
        except ValueError as error:
            if "minimum" not in str(error):  # scikit-learn's words for no rows or no columns
                raise
            return
        assert np.isfinite(model.predict_proba(frame)).all()
    if hasattr(model, "table_encoder_"):
        said = " ".join(str(warning.message) for warning in warned)
        kinds = model.table_encoder_.kinds_
        assert kinds["column"].tolist() == [str(name) for name in frame.columns]
        for row in kinds.itertuples():
            assert row.features or (row.left_out and f"{row.column!r} is left out" in said)


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["1", "2.5", None, "-3e2"], "number"),
        ([decimal.Decimal("1.5"), None, decimal.Decimal(2), decimal.Decimal(3)], "number"),
        ([10**40, 1, 2, 3], "number"),
        (["yes", "No", None, "yes"], "yes/no"),
        ([True, None, False, True], "yes/no"),
        (["2024-01-01", "2024-02-01T10:30", None, "2024-02-03"], "date"),
        (["31.12.2023", "01.02.2024", None, "3.4.2024"], "date"),
        ([datetime.date(2024, 1, 2), None, datetime.date(2023, 1, 2), None], "date"),
        (["a", "b", "a", None], "category"),
        (["12", "low", "12", "high"], "category"),
        (pd.Categorical(["1", "2", "3", "4"]), "category"),
        (["x1", "x2", "x3", "x4"], "id"),
        (["a red hat", "an old blue shoe", "one warm coat", "a light bag"], "text"),
        (["same"] * 4, "constant"),
        ([None, "", " ", np.nan], "all blank"),
        (pd.to_timedelta([1, 2, 3, 4], unit="h"), "number"),
        (pd.period_range("2024-01", periods=4, freq="M"), "date"),
    ],
)
def test_kinds_of_cells(cells, kind):
    frame = pd.DataFrame({"column": cells, "number": [1.0, 2.0, 3.0, 5.0]})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        encoder = lw.TableEncoder(sparse_output=False).fit(frame)
        assert np.isfinite(encoder.transform(frame)).all()
    assert encoder.kinds_["kind"].tolist() == [kind, "number"]


def test_half_a_character(tmp_path):
    """JSON allows a lone surrogate, which cannot be written as UTF-8."""
    frame = pd.DataFrame({"letter": pd.Series(["\ud800", "b"] * 5, dtype=object)})
    model = lw.MLkNN(k=1).fit(frame, [["x"], ["y"]] * 5)
    model.save(tmp_path / "model")
    assert lw.load(tmp_path / "model").predict_labels(frame)[:2] == [["x"], ["y"]]


def test_a_number_is_one_category_however_it_is_written():
    """Files have strings, pandas has floats where a cell is blank, and requests have integers."""
    encoder = lw.TableEncoder({"code": "category"}, sparse_output=False)
    encoder.fit(pd.DataFrame({"code": ["007", "7", "1.50", "x"] * 2}))
    for code in (7, 7.0, "7.0", np.float32(7)):
        assert encoder.transform(pd.DataFrame({"code": [code]})).tolist() == [[1, 0, 0]]
    assert encoder.get_feature_names_out().tolist() == ["code=7", "code=1.5", "code=x"]


def test_whole_numbers_named_like_an_id():
    frame = pd.DataFrame({"id": range(6), "shop_id": [1, None, 2, 2, 3, 3], "paid": range(6)})
    with pytest.warns(lw.exceptions.LabelweaveWarning, match="'id' is left out"):
        kinds = lw.TableEncoder().fit(frame).kinds_["kind"]
    assert kinds.tolist() == ["id", "category", "number"]

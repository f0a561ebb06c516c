"""The encoder of mixed tables."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelweave as lw
from labelweave.exceptions import InputError, LabelweaveWarning


def products(n_rows=40):
    """A table with a column of each kind."""
    random = np.random.default_rng(0)
    words = ["red", "blue", "warm", "light", "old"]
    return pd.DataFrame(
        {
            "id": [f"p{k}" for k in range(n_rows)],
            "price": np.where(random.random(n_rows) < 0.2, np.nan, random.normal(size=n_rows)),
            "brand": random.choice(["acme", "bolt", None], n_rows),
            "date": pd.date_range("2024-01-01", periods=n_rows).strftime("%Y-%m-%d"),
            "title": [" ".join(random.permutation(words)[:4]) for _ in range(n_rows)],
            "new": random.choice(["yes", "no"], n_rows),
            "shop": "main",
            "note": None,
        }
    )


@parametrize_with_checks([lw.TableEncoder(), lw.TableEncoder(output="codes")])
@pytest.mark.filterwarnings("ignore::labelweave.exceptions.LabelweaveWarning")
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


KINDS = ["id", "number", "category", "date", "text", "yes/no", "constant", "all blank"]


@pytest.fixture(scope="module")
def encoder():
    with pytest.warns(LabelweaveWarning, match="left out"):
        return lw.TableEncoder(sparse_output=False).fit(products())


def test_kinds_are_found_and_said(encoder):
    assert encoder.kinds_["kind"].tolist() == KINDS
    assert encoder.kinds_.loc[encoder.kinds_["features"] == 0, "left_out"].ne("").all()


def test_columns_that_are_left_out_are_said():
    with pytest.warns(LabelweaveWarning) as warned:
        lw.TableEncoder().fit(products())
    said = " ".join(str(w.message) for w in warned)
    assert all(f"{name!r} is left out" in said for name in ("id", "shop", "note"))


@pytest.mark.parametrize("output", ["one-hot", "codes"])
def test_sparse_and_dense_are_the_same(output):
    frame = products().drop(columns=["id", "shop", "note"])
    sparse = lw.TableEncoder(output=output, sparse_output=True).fit(frame)
    dense = lw.TableEncoder(output=output, sparse_output=False)
    np.testing.assert_array_equal(sparse.transform(frame).toarray(), dense.fit_transform(frame))
    assert len(dense.get_feature_names_out()) == dense.transform(frame).shape[1]
    assert clone(dense).get_params() == dense.get_params()


def test_names_and_numbers(encoder):
    features = pd.DataFrame(encoder.transform(products()), columns=encoder.get_feature_names_out())
    frame = products()
    assert (features["price is blank"] == frame["price"].isna()).all()
    assert (features["brand=acme"] == (frame["brand"] == "acme")).all()
    assert (features["brand is blank"] == frame["brand"].isna()).all()
    assert features["price"].corr(frame["price"], method="spearman") == pytest.approx(1)
    assert features["date: days"].is_monotonic_increasing
    assert np.isfinite(features.to_numpy()).all()


def test_codes_keep_blanks():
    frame = products()[["price", "brand", "title"]]
    encoder = lw.TableEncoder(output="codes").fit(frame)
    codes = encoder.transform(frame)
    assert encoder.categorical_.tolist() == [True] + [False] * (codes.shape[1] - 1)
    assert (np.isnan(codes[:, 0]) == frame["brand"].isna()).all()
    assert (np.isnan(codes[:, 1]) == frame["price"].isna()).all()
    np.testing.assert_array_equal(codes[:, 1], frame["price"])


def test_other_tables_at_prediction(encoder):
    frame = products()
    expected = encoder.transform(frame)
    turned = frame[frame.columns[::-1]]
    np.testing.assert_array_equal(encoder.transform(turned), expected)
    with pytest.warns(LabelweaveWarning, match="'price' is missing"):
        features = encoder.transform(frame.drop(columns="price"))
    assert features[:, 0].any() == False  # noqa: E712
    with pytest.warns(LabelweaveWarning, match="'extra' was not in the training table"):
        encoder.transform(frame.assign(extra=1))
    with pytest.warns(LabelweaveWarning, match=r"'brand' has a value .* \('core'\)"):
        encoder.transform(frame.assign(brand="core"))
    with pytest.raises(InputError, match="row 3 of the column 'price' is 'cheap'"):
        encoder.transform(frame.assign(price=["1"] * 3 + ["cheap"] * 37))
    with pytest.raises(InputError, match="none of the columns"):
        encoder.transform(pd.DataFrame({"x": [1]}))


def test_pandas_output():
    frame = products()[["price", "brand"]]
    features = (
        lw.TableEncoder(sparse_output=False).set_output(transform="pandas").fit_transform(frame)
    )
    assert features.columns[0] == "price"
    words = pd.DataFrame({"brand": list("abcdefghij") * 4})  # sparse by default
    assert lw.TableEncoder().fit(words).sparse_
    encoder = lw.TableEncoder().set_output(transform="pandas").fit(words)
    assert list(encoder.transform(words).columns) == list(encoder.get_feature_names_out())


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"a": [], "b": []}), "0 rows and 2 columns"),
        (pd.DataFrame(index=range(3)), "3 rows and 0 columns"),
        (pd.DataFrame([["x", 1], ["y", 2]], columns=["a", "a"]), "two columns named 'a'"),
        (pd.DataFrame({"a": [[1], [2]]}), "row 0 of the column 'a' is a list"),
        (pd.DataFrame({"a": ["k"] * 3}), "no column of the table .* can be learnt from: 'a'"),
        (pd.DataFrame({"a": ["1", "inf", "2"]}), "infinity at row 1, column 'a'"),
    ],
)
def test_what_cannot_be_learnt_is_refused(frame, words):
    with pytest.raises(InputError, match=words):
        lw.TableEncoder().fit(frame)


def test_kinds_can_be_given():
    frame = products()[["price", "brand", "id"]]
    encoder = lw.TableEncoder({"price": "category", "id": "text"}).fit(frame)
    assert encoder.kinds_["kind"].tolist() == ["category", "category", "text"]
    with pytest.raises(InputError, match="column 'colour', which the table does not have"):
        lw.TableEncoder({"colour": "text"}).fit(frame)
    with pytest.raises(InputError, match="row 0 of the column 'id' is 'p0', which is not a number"):
        lw.TableEncoder({"id": "number"}).fit(frame)


def test_means_of_labels_of_many_categories():
    """They are smoothed, ignore unknown labels, and those of a training row leave it out."""
    random = np.random.default_rng(0)
    shop = random.integers(0, 100, 2000)
    truth = (shop[:, None] % [2, 3] == 0).astype(float)
    Y = np.where(random.random(truth.shape) < 0.3, np.nan, truth)
    frame = pd.DataFrame({"shop": [f"s{k}" for k in shop]})
    encoder = lw.TableEncoder(max_categories=10, sparse_output=False)
    training = encoder.fit_transform(frame, Y)[:, -2:]
    means = encoder.transform(frame)[:, -2:]
    assert encoder.get_feature_names_out()[-1].startswith("shop: mean of")
    row = 5
    for j in range(2):
        of_shop = Y[shop == shop[row], j]
        known = of_shop[~np.isnan(of_shop)]
        prior = (np.nansum(Y[:, j]) + 1) / ((~np.isnan(Y[:, j])).sum() + 2)
        expected = (known.sum() + 10 * prior) / (len(known) + 10)
        assert means[row, j] == pytest.approx(expected, rel=1e-5)
    assert not np.allclose(training, means)
    noise = random.integers(0, 2, truth.shape)  # labels that the shop says nothing about
    out_of_fold = clone(encoder).fit_transform(frame, noise)[:, -2:]
    assert abs(np.corrcoef(out_of_fold[:, 0], noise[:, 0])[0, 1]) < 0.1


def test_saved_with_a_model(tmp_path):
    frame, Y = products(), np.tile([[1, 0], [0, 1]], (20, 1))
    with pytest.warns(LabelweaveWarning):
        model = lw.BoostedTrees(max_iter=5).fit(frame, Y)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    assert loaded.table_encoder_.kinds_.equals(model.table_encoder_.kinds_)
    assert loaded.n_features_in_ == 8
    assert lw.Table(frame).shape == (40, 8)
    np.testing.assert_array_equal(
        loaded.predict_proba(lw.Table(frame)), loaded.predict_proba(frame)
    )


def test_a_model_of_numbers_says_what_it_cannot_take():
    model = lw.BoostedTrees(max_iter=2).fit(
        pd.DataFrame({"a": [1.0, 2.0] * 5}), [[1, 0], [0, 1]] * 5
    )
    with pytest.raises(
        InputError, match="the column 'a' has blanks or values that are not numbers"
    ):
        model.predict(pd.DataFrame({"a": ["x"]}))


@pytest.mark.parametrize("output", ["one-hot", "codes"])
def test_numbers_of_any_size_become_features_that_methods_take(output):
    largest = np.finfo(float).max
    rows = [largest, -largest, 1e300, 1e-300, 0.0, 2.5] * 2
    for column in (rows, [0.0] * 11 + [largest], [1e-300 * k for k in range(12)]):
        frame = pd.DataFrame({"size": column, "colour": ["red", "blue"] * 6})
        encoder = lw.TableEncoder(output=output, sparse_output=False).fit(frame)
        frame["size"] = rows
        assert np.abs(encoder.transform(frame)).max() <= 2.0**64


def test_an_own_embedder_is_fitted_to_each_column_of_texts():
    words = {"a": "red hat number {} of many", "b": "some blue lamp item {} is here"}
    frame = pd.DataFrame({k: [text.format(7 * n) for n in range(20)] for k, text in words.items()})
    own = lw.TfidfEmbedder()
    encoder = lw.TableEncoder(text=own, sparse_output=False)
    features = encoder.fit_transform(frame)
    np.testing.assert_array_equal(encoder.transform(frame), features)
    assert not hasattr(own, "vocabulary_")  # the parameter stays as it was

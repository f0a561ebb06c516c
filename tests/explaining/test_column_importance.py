"""Importance of columns and words on held-out rows."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.inspection import permutation_importance
from sklearn.metrics import average_precision_score

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.explaining import feature_importance
from labelweave.labels import as_labels
from labelweave.tables import Table


def test_the_columns_of_a_mixed_table(mixed):
    model, X, Y = mixed
    importance = feature_importance(model, X, Y, random_state=0)
    assert importance.features == ["brand", "price", "date", "noise"]
    assert importance.labels == ["cheap", "acme", "none"]
    best = importance.top(1)
    assert best["cheap"][0][0] == "price"
    assert best["acme"][0][0] == "brand"
    assert (importance.values[:2].max(axis=1) > 0.2).all()
    assert np.abs(importance.values[0, [0, 3]]).max() < 0.1
    assert importance.n_rows == len(X)


def test_agrees_with_scikit_learn(linear):
    model, X, Y = linear
    ours = feature_importance(model, X, Y, n_repeats=40, random_state=0)

    def score(_, rows, truth):
        return average_precision_score(truth, model.predict_proba(rows)[:, 0])

    truth = Y.to_numpy()[:, 0]
    other = permutation_importance(model, X, truth, scoring=score, n_repeats=40, random_state=1)
    np.testing.assert_allclose(ours.values[0], other.importances_mean, atol=0.03)
    np.testing.assert_allclose(ours.spread[0], other.importances_std, atol=0.02)
    assert ours.scores[0] == pytest.approx(score(None, X, truth))


@pytest.mark.parametrize("form", [sp.csr_array, Table, "frame"])
def test_all_forms_of_a_table_are_the_same(linear, form):
    import pandas as pd

    model, X, Y = linear
    expected = feature_importance(model, X, Y, random_state=0)
    rows = form(X) if form is sp.csr_array else pd.DataFrame(X, columns=list("vwxyz"))
    fitted = lw.BinaryRelevance().fit(rows, Y) if form is not sp.csr_array else model
    if form is not sp.csr_array:
        expected = feature_importance(lw.BinaryRelevance().fit(X, Y), X, Y, random_state=0)
    importance = feature_importance(
        fitted, Table(rows) if form is Table else rows, Y, random_state=0
    )
    np.testing.assert_allclose(importance.values, expected.values, atol=1e-9)
    names = [f"x{j}" for j in range(5)] if form is sp.csr_array else list("vwxyz")
    assert importance.features == names


def test_unknown_labels_are_ignored(linear):
    model, X, Y = linear
    values = Y.to_numpy().copy()
    values[:60, 0] = np.nan
    masked = feature_importance(model, X, as_labels(values, names=Y.names), random_state=0)
    wrong = np.where(np.isnan(values), 1 - Y.to_numpy(), values)  # what must not be looked at
    flipped = feature_importance(model, X, as_labels(wrong, names=Y.names), random_state=0)
    assert masked.values[0, 0] > 0.2
    assert flipped.values[0, 0] < 0.5 * masked.values[0, 0]
    np.testing.assert_array_equal(masked.values[1], flipped.values[1])


def test_a_label_without_positives_has_no_importance(linear):
    model, X, Y = linear
    values = Y.to_numpy().copy()
    values[:, 1] = 0
    importance = feature_importance(model, X, as_labels(values, names=Y.names), random_state=0)
    assert np.isnan(importance.values[1]).all()
    assert importance.top()["b"] == []
    assert np.isfinite(importance.values[0]).all()


def test_labels_are_matched_by_name(linear):
    model, X, Y = linear
    straight = feature_importance(model, X, Y, random_state=0)
    turned = feature_importance(model, X, Y.select(["b", "a"]), random_state=0)
    np.testing.assert_allclose(turned.values, straight.values[::-1])
    only = feature_importance(model, X, Y, labels=["b"], random_state=0)
    np.testing.assert_allclose(only.values, straight.values[1:])
    np.testing.assert_allclose(straight.select_labels(["b"]).values, only.values)


class Counting:
    """A model that counts its calls."""

    def __init__(self, model):
        self.model, self.label_names_, self.n_calls, self.n_rows = model, model.label_names_, 0, 0

    def predict_proba(self, X):
        self.n_calls += 1
        self.n_rows += X.shape[0]
        return self.model.predict_proba(X)


def test_many_columns_are_predicted_in_one_call(linear):
    model, X, Y = linear
    counting = Counting(model)
    feature_importance(counting, X, Y, n_repeats=3, random_state=0)
    assert counting.n_calls == 2  # the rows as they are, and all changed rows
    assert counting.n_rows <= len(X) * (1 + 5 * 3)


def test_large_tables_are_predicted_in_chunks(linear, monkeypatch):
    from labelweave.explaining import model_outputs

    model, X, Y = linear
    expected = feature_importance(model, X, Y, random_state=0)
    monkeypatch.setattr(model_outputs, "_MAX_ROWS", 70)
    counting = Counting(model)
    importance = feature_importance(counting, X, Y, random_state=0)
    assert counting.n_calls > 20
    np.testing.assert_allclose(importance.values, expected.values)


def test_rows_that_stay_the_same_are_not_predicted():
    X = np.zeros((50, 3))
    X[:5, 0] = 1
    Y = as_labels(X[:, [0]], names=["a"])
    counting = Counting(lw.BinaryRelevance().fit(X, Y))
    feature_importance(counting, X, Y, n_repeats=1, random_state=0)
    assert counting.n_rows <= 50 + 10


def test_the_most_effective_columns_are_measured(linear):
    model, X, Y = linear
    importance = feature_importance(model, X, Y, max_columns=2, random_state=0)
    assert importance.features == ["x0", "x1"]
    assert importance.not_measured == ["x2", "x3", "x4"]


def test_fewer_rows(linear):
    model, X, Y = linear
    assert feature_importance(model, X, Y, max_rows=30, random_state=0).n_rows == 30


def test_words(texts):
    model, X, Y = texts
    importance = feature_importance(model, X, Y)
    assert sorted(importance.features) == ["may", "sea", "so", "the", "town", "warm"]
    assert {label: best[0][0] for label, best in importance.top(1).items()} == {
        "sea": "sea",
        "warm": "warm",
    }
    few = feature_importance(model, X, Y, max_columns=3)
    assert len(few.features) == 3
    assert len(few.not_measured) == 3
    assert "so" in few.not_measured  # every text has it


def test_a_pipeline():
    from explained_models import linear_rows
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, Y = linear_rows()
    model = make_pipeline(StandardScaler(), lw.BinaryRelevance()).fit(X, Y)
    importance = feature_importance(model, X, Y, n_repeats=1, random_state=0)
    assert importance.labels == ["a", "b"]
    assert [best[0][0] for best in importance.top(1).values()] == ["x0", "x1"]


def test_a_frame_of_results(linear):
    model, X, Y = linear
    frame = feature_importance(model, X, Y, random_state=0).to_frame()
    assert list(frame) == ["label", "feature", "importance", "spread"]
    assert len(frame) == 10


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "f1"}, "metric must be one of ap, auc, not 'f1'"),
        ({"n_repeats": 0}, "n_repeats must be at least 1, not 0"),
        ({"max_rows": 0}, "max_rows must be at least 1, not 0"),
        ({"labels": ["c"]}, "no label 'c'"),
        ({"feature_names": ["v"]}, "1 names for 5 columns"),
    ],
)
def test_wrong_arguments(linear, options, words):
    model, X, Y = linear
    with pytest.raises(InputError, match=words):
        feature_importance(model, X, Y, **options)


def test_rows_and_labels_of_different_length(linear):
    model, X, Y = linear
    with pytest.raises(InputError, match="X has 99 rows, but Y has 100"):
        feature_importance(model, X[1:], Y)


def test_images_are_refused():
    with pytest.raises(InputError, match="explanations need a table with columns"):
        feature_importance(None, np.zeros((2, 4, 4, 3)), [["a"], []])

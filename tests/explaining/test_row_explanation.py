"""Explanations of one row."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.explaining import explain_row
from labelweave.tables import Table


def test_linear_models_have_their_shap_values(linear):
    """SHAP values of a linear model of independent features are coef * (x - mean).

    S. Lundberg and S. Lee, A unified approach to interpreting model predictions, 2017, Corollary 1.
    """
    model, X, _ = linear
    background = X[10:]
    for row in X[:10]:
        explanation = explain_row(model, row, background, scale="logit")
        expected = model.coef_ * (row - background.mean(axis=0))
        np.testing.assert_allclose(explanation.changes, expected, atol=1e-6)


def test_columns_for_and_against(mixed):
    model, X, _ = mixed
    cheap = X["price"] < -0.5
    acme = X["brand"] == "acme"
    is_cheap = X[(cheap & acme).to_numpy()].iloc[:1]
    is_dear = X[((X["price"] > 0.5) & ~acme).to_numpy()].iloc[:1]
    for row, sign in ((is_cheap, 1), (is_dear, -1)):
        explanation = explain_row(model, row, X)
        for label, column in (("cheap", "price"), ("acme", "brand")):
            name, value, change = explanation.strongest(label, 1)[0]
            assert name == column
            assert value == row[column].iloc[0]
            assert change * sign > 0.2
        probability = model.predict_proba(row)[0]
        np.testing.assert_allclose(explanation.probabilities, probability)
        np.testing.assert_array_equal(explanation.predicted, model.predict(row)[0])


def test_changes_are_those_of_a_loop(mixed):
    model, X, _ = mixed
    row, background = X.iloc[:1], X.iloc[1:20]
    explanation = explain_row(model, row, background)
    for j, name in enumerate(X.columns):
        many = row.loc[row.index.repeat(len(background))].reset_index(drop=True)
        many[name] = background[name].to_numpy()
        fall = model.predict_proba(row)[0] - model.predict_proba(many).mean(axis=0)
        np.testing.assert_allclose(explanation.changes[:, j], fall, atol=1e-6)


def test_forms_of_a_row(linear, mixed):
    model, X, _ = linear
    expected = explain_row(model, X[0], X).changes
    for row, background in ((X[:1], X), (X[0].tolist(), X), (sp.csr_array(X[:1]), sp.csr_array(X))):
        np.testing.assert_allclose(explain_row(model, row, background).changes, expected)
    model, frame, _ = mixed
    expected = explain_row(model, frame.iloc[:1], frame).changes
    for row in (frame.iloc[0], Table(frame)[:1]):
        background = Table(frame) if isinstance(row, Table) else frame
        np.testing.assert_allclose(explain_row(model, row, background).changes, expected)
    np.testing.assert_allclose(explain_row(model, Table(frame)[:1], frame).changes, expected)


def test_words(texts):
    model, *_ = texts
    text = "Warm sea, WARM may"
    explanation = explain_row(model, text)
    assert explanation.features == ["warm", "sea", "may"]
    assert explanation.values == [2, 1, 1]
    without = model.predict_proba([" sea,  may", "Warm , WARM may", "Warm sea, WARM "])
    expected = model.predict_proba([text]) - without
    np.testing.assert_allclose(explanation.changes, expected.T, atol=1e-7)
    assert explanation.strongest("warm", 1)[0][0] == "warm"
    assert explain_row(model, [text], columns=["sea"]).features == ["sea"]


def test_a_text_without_words(texts):
    model, *_ = texts
    explanation = explain_row(model, "?")
    assert explanation.changes.shape == (2, 0)
    assert explanation.strongest("sea") == []


def test_limits_are_told(linear, texts):
    model, X, _ = linear
    explanation = explain_row(model, X[0], X, max_columns=2)
    assert (explanation.features, explanation.not_measured) == (["x0", "x1"], ["x2", "x3", "x4"])
    calls = []

    class Recording:
        label_names_ = model.label_names_

        def predict_proba(self, rows):
            calls.append(len(rows))
            return model.predict_proba(rows)

    explain_row(Recording(), X[0], X, max_background=7)
    assert calls == [1, 35]  # all columns in one call


def test_labels_and_columns_can_be_chosen(linear):
    model, X, _ = linear
    everything = explain_row(model, X[0], X)
    one = explain_row(model, X[0], X, labels=["b"], columns=["x3", "x1"])
    assert (one.labels, one.features) == (["b"], ["x3", "x1"])
    np.testing.assert_allclose(one.changes, everything.changes[[1]][:, [3, 1]])
    best = "ab"[int(everything.probabilities.argmax())]
    assert everything.chosen_labels(1) == [best]


def test_what_is_special_about_a_row_is_said_once(mixed):
    model, X, _ = mixed
    row = X.iloc[:1].assign(brand="new")
    with pytest.warns(
        LabelweaveWarning, match="'brand' has a value that no training row had"
    ) as all_:
        explain_row(model, row, X)
    assert len(all_) == 1


def test_one_class_per_row(linear):
    _, X, _ = linear
    classes = np.digitize(X[:, 0], [-0.5, 0.5])
    model = lw.BinaryRelevance().fit(X, classes)
    explanation = explain_row(model, X[0], X)
    assert explanation.labels == ["0", "1", "2"]
    assert explanation.predicted.tolist() == [k == model.predict(X[:1])[0] for k in range(3)]


def test_a_frame_of_results(mixed):
    model, X, _ = mixed
    frame = explain_row(model, X.iloc[:1], X).to_frame()
    assert list(frame) == ["label", "probability", "feature", "value", "change"]
    assert len(frame) == 12


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"background": None}, "background is missing"),
        ({"scale": "odds"}, "scale must be"),
        ({"labels": ["c"]}, "no label 'c'"),
        ({"columns": ["c"]}, "no column or word 'c'"),
        ({"max_background": 0}, "max_background must be at least 1"),
        ({"background": np.zeros((3, 4))}, "the row has 5 columns, but the background has 4"),
    ],
)
def test_wrong_arguments(linear, options, words):
    model, X, _ = linear
    with pytest.raises(InputError, match=words):
        explain_row(model, X[0], **{"background": X, **options})


def test_two_rows_and_other_columns_are_refused(mixed):
    model, X, _ = mixed
    with pytest.raises(InputError, match="x has 2 rows"):
        explain_row(model, X.iloc[:2], X)
    with pytest.raises(InputError, match="do not have the columns"):
        explain_row(model, X.iloc[:1], X[["brand"]])
    with pytest.raises(InputError, match="one row is explained at a time"):
        explain_row(lw.TextClassifier(), ["one", "two"])

"""Importance that models state themselves."""

import numpy as np
import pytest
from explained_models import linear_rows, mixed_table
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import labelweave as lw
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.explaining import native_importance


def test_weights_of_words_have_a_direction(texts):
    model, *_ = texts
    importance = native_importance(model)
    assert importance.kind == "share of the absolute weights"
    assert importance.features == model.vocabulary_
    np.testing.assert_allclose(importance.values.sum(axis=1), 1, rtol=1e-6)
    word = importance.features.index
    assert importance.direction[0, word("sea")] == 1
    assert importance.direction[1, word("warm")] == 1
    signs = np.sign(model.classifier_.coef_)
    np.testing.assert_array_equal(importance.direction, signs)
    assert importance.top(1)["warm"][0][0] == "warm"
    assert [name for name, _ in importance.top()["sea"]] == [
        name for name, _ in model.top_features()["sea"]
    ]


def test_gains_of_the_columns_of_a_mixed_table(mixed):
    model, *_ = mixed
    importance = native_importance(model)
    assert importance.features == ["brand", "price", "date", "noise"]
    best = {label: features[0][0] for label, features in importance.top(1).items()}
    assert (best["cheap"], best["acme"]) == ("price", "brand")


def test_directions_of_a_column_with_several_features():
    frame, Y = mixed_table()
    direction = lw.BinaryRelevance().fit(frame, Y).feature_directions()
    # more of "acme" speaks for the label, more of "bolt" against it
    assert direction[1, 0] == 0
    X, Y = linear_rows()
    np.testing.assert_array_equal(
        lw.BinaryRelevance().fit(X, Y).feature_directions()[[0, 1], [0, 1]], [1, 1]
    )


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (lw.BinaryRelevance(), True),
        (lw.BinaryRelevance(DecisionTreeClassifier()), True),
        (lw.BinaryRelevance(KNeighborsClassifier()), False),
        (lw.make("mlknn"), False),
        (lw.TextClassifier(), True),
        (lw.TextClassifier(lw.make("mlknn")), False),
        (lw.TextClassifier(embedder="fast"), False),
    ],
)
def test_the_capability(model, expected):
    assert capabilities(model).feature_importance is expected


def test_other_models_are_refused():
    X, Y = linear_rows(40)
    for model in (lw.make("mlknn"), lw.BinaryRelevance(KNeighborsClassifier())):
        with pytest.raises(InputError, match="neither coefficients nor gains"):
            native_importance(model.fit(X, Y))
    pipeline = lw.LabelPipeline([("scaler", StandardScaler()), ("br", lw.BinaryRelevance())])
    with pytest.raises(InputError, match="with feature_importance"):
        native_importance(pipeline.fit(X, Y))
    texts = lw.TextClassifier(lw.make("mlknn", k=2)).fit(["sea", "sun"] * 5, [["a"], ["b"]] * 5)
    with pytest.raises(InputError, match="importance of words can be read"):
        texts.feature_importance()

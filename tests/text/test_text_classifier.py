"""Classifiers of texts."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.text import TextClassifier

TEXTS = ["sun and sea", "deep blue sea", "hot sun", "old sea", "sun on the sea", "no water"] * 6
LABELS = [["sea", "sun"], ["sea"], ["sun"], ["sea"], ["sea", "sun"], []] * 6


@pytest.fixture(scope="module")
def fitted():
    return TextClassifier(lw.make("mlknn", k=3)).fit(TEXTS, LABELS)


def test_learns_from_words(fitted):
    assert fitted.predict_labels(["deep blue sea", "hot sun", "no water"]) == [["sea"], ["sun"], []]
    assert fitted.predict_proba(["the sea"]).shape == (1, 2)


def test_weights_are_those_of_scikit_learn(fitted):
    expected = TfidfVectorizer(sublinear_tf=True, dtype=np.float32).fit(TEXTS)
    weights = fitted._checked_features(["sun sun sea", "unheard words"], reset=False)
    assert sp.issparse(weights)
    np.testing.assert_allclose(
        weights.toarray(), expected.transform(["sun sun sea", "unheard words"]).toarray()
    )


def test_refit_forgets_the_old_words(fitted):
    again = clone(fitted).fit(TEXTS, LABELS)
    again.fit(["cold moon", "warm moon", "cold day", "warm day"] * 5, [["c"], ["w"]] * 10)
    assert again.vocabulary_ == ["cold", "day", "moon", "warm"]
    assert again.predict_labels(["cold moon"]) == [["c"]]


def test_pairs_of_words_and_limits():
    model = TextClassifier(lw.make("mlknn", k=3), max_words=2, min_texts=7).fit(TEXTS, LABELS)
    assert model.vocabulary_ == ["sea", "sun"]
    pairs = TextClassifier(lw.make("mlknn", k=3), max_words=2).fit(TEXTS, LABELS)
    assert "blue sea" in pairs.vocabulary_
    few = TextClassifier(lw.make("mlknn", k=3), max_features=1).fit(TEXTS, LABELS)
    assert few.vocabulary_ == ["sea"]


def test_words_of_validation_texts_are_not_learnt():
    model = TextClassifier(lw.make("mlknn", k=3), threshold="tuned")
    model.fit(TEXTS, LABELS, validation=(["secret sea", "sun"] * 3, [["sea"], ["sun"]] * 3))
    assert "secret" not in model.vocabulary_


def test_threshold_is_the_rule_of_the_classifier_by_default():
    model = TextClassifier(lw.make("mlknn", k=3, threshold="top-1")).fit(TEXTS, LABELS)
    assert model.threshold == "auto"
    assert (model.predict(TEXTS[:6]).sum(axis=1) == 1).all()
    tuned = TextClassifier(lw.make("mlknn", k=3, threshold="tuned"), random_state=0)
    cut = tuned.fit(TEXTS, LABELS).threshold_
    assert cut.needs_validation
    assert TextClassifier().fit(TEXTS, LABELS).threshold_.to_dict()["kind"] == "fixed"


def test_a_threshold_of_its_own_goes_before():
    model = TextClassifier(lw.make("mlknn", k=3, threshold=0.0), threshold="top-1")
    assert (model.fit(TEXTS, LABELS).predict(TEXTS[:6]).sum(axis=1) == 1).all()


def test_seed_reaches_the_classifier():
    inner = lw.make("mlp", hidden=(4,), epochs=2)
    models = [TextClassifier(inner, random_state=s).fit(TEXTS, LABELS) for s in (0, 0, 1)]
    p = [model.predict_proba(TEXTS[:3]) for model in models]
    np.testing.assert_array_equal(p[0], p[1])
    assert (p[0] != p[2]).any()
    assert inner.random_state is None


def test_saved_and_loaded_it_predicts_the_same(fitted, tmp_path):
    fitted.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    assert isinstance(loaded, TextClassifier)
    new = ["the sea in the sun", "nothing known", ""]
    np.testing.assert_array_equal(loaded.predict_proba(new), fitted.predict_proba(new))
    assert loaded.predict_labels(new) == fitted.predict_labels(new)


def test_public_name():
    assert lw.TextClassifier is TextClassifier


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ("one text", "one text"),
        ([], "no text"),
        (["a", 1.5], "row 1 is float"),
        (np.zeros((2, 2)), r"shape \(2, 2\)"),
    ],
)
def test_anything_but_texts_is_refused(X, message):
    with pytest.raises(InputError, match=message):
        TextClassifier(lw.make("mlknn")).fit(X, [["a"], ["b"]])


def test_texts_without_words_are_refused():
    with pytest.raises(InputError, match="no word of the 2 texts"):
        TextClassifier(lw.make("mlknn")).fit(["", "!"], [["a"], ["b"]])


def test_weights_of_texts_and_of_validation_texts_reach_the_classifier():
    weight = np.random.default_rng(0).random(36) + 0.1
    network = lw.MLP(hidden=(4,), epochs=2, random_state=0)
    model = TextClassifier(network)
    held = lw.Dataset(TEXTS[24:], LABELS[24:], weights=weight[24:])
    model.fit(TEXTS[:24], LABELS[:24], sample_weight=weight[:24], validation=held)
    X, X_held = (model._checked_features(part, reset=False) for part in (TEXTS[:24], TEXTS[24:]))
    rows = lw.Dataset(X_held, LABELS[24:], weights=weight[24:])
    network.fit(X, LABELS[:24], sample_weight=weight[:24], validation=rows)
    losses = network.history_["val_loss"].tolist()
    assert model.classifier_.history_["val_loss"].tolist() == losses
    network.fit(X, LABELS[:24], sample_weight=weight[:24], validation=(X_held, LABELS[24:]))
    assert network.history_["val_loss"].tolist() != losses

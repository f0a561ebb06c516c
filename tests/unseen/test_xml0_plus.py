"""XML0+: its features and its logistic regression against slow, obvious forms."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import labelweave as lw
from labelweave.exceptions import LabelweaveWarning
from labelweave.thresholds import PerLabelThreshold
from labelweave.unseen.xml0_plus import (
    FEATURES,
    StackedScores,
    fit_stacker,
    mean_and_spread,
    relative_combination,
)

SEEN = ["sea life", "desert land", "city street"]
TEXTS = ["sea fish wave", "desert sand camel", "city street car", "sea city harbour"] * 20
Y = lw.as_labels([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]] * 20, names=SEEN)


def constant(*p):
    """A classifier with the same probabilities for every text."""
    return lambda X: np.tile(p, (len(X), 1))


def make_scores(random, truth):
    similarity, conse, fusion, words = (
        truth * share + random.random(truth.shape) for share in (0.6, 0.2, 0.4, 0.5)
    )
    strength, mean = random.random(len(truth)), random.random(truth.shape[1])
    return StackedScores(similarity, conse, fusion, strength, words, mean)


def slow_feature(scores, name, i, j):
    if name.endswith("_rank"):
        row = getattr(scores, name.removesuffix("_rank"))[i]
        return 1 / (5 + 1 + sum(other > row[j] for other in row))
    if name == "fusion_strength":
        return scores.fusion[i, j] * scores.strength[i] ** 0.25
    if name == "similarity_excess":
        return scores.similarity[i, j] - scores.mean_similarity[j]
    return getattr(scores, name)[i, j]


@pytest.mark.parametrize("name", FEATURES)
def test_features(name):
    random = np.random.default_rng(0)
    scores = make_scores(random, (random.random((4, 6)) < 0.3).astype(float))
    scores.similarity[0, :2] = 0.5  # equal scores share a rank
    expected = [[slow_feature(scores, name, i, j) for j in range(6)] for i in range(4)]
    np.testing.assert_allclose(scores.feature(name), expected)


def test_the_stacker_is_a_logistic_regression_over_all_pairs():
    random = np.random.default_rng(1)
    truth = (random.random((60, 5)) < 0.3).astype(float)
    truth[0, 0] = np.nan  # unknown: excluded
    scores = make_scores(random, np.nan_to_num(truth))
    names = ("similarity", "fusion_rank")
    stacker = fit_stacker(names, [(scores, truth)], np.random.RandomState(0))
    pairs = [(i, j) for i in range(60) for j in range(5) if not np.isnan(truth[i, j])]
    X = np.array([[slow_feature(scores, name, i, j) for name in names] for i, j in pairs])
    scale = X.std(axis=0)
    slow = LogisticRegression(max_iter=1000).fit(X / scale, [truth[pair] for pair in pairs])
    probabilities = [stacker.probabilities(scores)[pair] for pair in pairs]
    np.testing.assert_allclose(probabilities, slow.predict_proba(X / scale)[:, 1], atol=1e-4)


def test_the_strength_is_the_mean_probability_of_the_predicted_labels():
    p = np.array([[0.9, 0.01, 0.7], [0.0, 0.0, 0.0]])
    model = lw.XML0Plus.from_fitted(constant(0, 0, 0), SEEN, encoder="tfidf").add_labels("sea")
    scores, _ = model._label_scores(model.table_.unseen_rows, p, None)
    np.testing.assert_allclose(scores.strength, [0.8, 0])


def test_added_scores_follow_the_labels(tmp_path):
    first = lw.XML0Plus(encoder="tfidf", random_state=0).fit(TEXTS, Y)
    assert first.combination_.names == FEATURES
    changed = lw.XML0Plus(encoder="tfidf", random_state=0).fit(TEXTS, Y)
    first.add_labels(["camel sand"])
    changed.add_labels(["wave fish", "moon"]).remove_labels("wave fish")
    changed.rename_label("moon", "camel sand")
    changed.save(tmp_path / "model")
    expected = first.predict_proba(TEXTS[:4])
    assert expected[1, 3] > expected[[0, 2, 3], 3].max()
    for model in (changed, lw.load(tmp_path / "model")):
        np.testing.assert_allclose(model.predict_proba(TEXTS[:4]), expected)


def test_without_documents_it_is_xml0():
    texts, new = ["sea street", "desert"], ["sea street", "land"]
    plus, plain = (
        method.from_fitted(constant(0.9, 0.2, 0.7), SEEN, encoder="tfidf").add_labels(new)
        for method in (lw.XML0Plus, lw.XML0)
    )
    np.testing.assert_array_equal(plus.predict_proba(texts), plain.predict_proba(texts))


class Classifier:
    """Predicts the same for every document, and knows how frequent its labels are."""

    label_names_ = tuple(
        f"{a} {b}" for a in ("red", "blue", "old", "new") for b in ("car", "sea", "sky")
    )
    label_prevalence_ = np.full(12, 0.05)

    def predict_proba(self, X):
        return np.tile(np.linspace(0, 0.3, 12), (len(X), 1))


def test_thresholds_per_label_become_their_common_one():
    classifier = Classifier()
    classifier.threshold_ = PerLabelThreshold()
    classifier.threshold_.values_, classifier.threshold_.common_ = np.full(12, 0.1), 0.07
    with pytest.warns(LabelweaveWarning, match="all labels get the common one, 0.07"):
        model = lw.XML0Plus.from_fitted(classifier, encoder="tfidf")
    assert model.threshold_.value == 0.07
    assert (
        lw.XML0Plus.from_fitted(classifier, encoder="tfidf", threshold=0.2).threshold_.value == 0.2
    )


def test_without_documents_scores_are_relative_to_those_of_seen_labels(tmp_path):
    model = lw.XML0Plus.from_fitted(Classifier(), encoder="tfidf")
    assert model.expected_prevalence_ == pytest.approx(0.05)
    model.add_labels(["sea sky", "car sky"])
    texts = ["a red sea", "the blue car and the sky", "nothing at all"]
    p = model.predict_proba(texts)
    together = np.concatenate([model.predict_proba([text]) for text in texts])
    np.testing.assert_allclose(p, together, atol=1e-6)  # no document depends on another
    X = np.array(texts, dtype=object)
    P, documents = model._seen_probabilities(X), model._documents(X)
    rows = np.concatenate([model.table_.seen_rows, model.table_.unseen_rows])
    scores, _ = model._label_scores(rows, P, documents)
    plain = 0.7 * scores.similarity + 0.3 * scores.fusion
    for i in range(3):
        others = [plain[i, j] for j in range(12) if P[i, j] < model.min_probability]
        others = others if len(others) >= 10 else plain[i, :12]
        relative = (plain[i, 12:] - np.mean(others)) / max(np.std(others), 0.02)
        combination = relative_combination(0.05)
        expected = 1 / (1 + np.exp(-(combination.slope * relative + combination.offset)))
        np.testing.assert_allclose(p[i, 12:], expected, atol=1e-5)


def test_an_unrelated_label_is_expected_as_often_as_a_seen_one():
    draws = np.random.default_rng(0).normal(size=200_000)
    for prevalence in (0.2, 0.01):
        combination = relative_combination(prevalence)
        p = 1 / (1 + np.exp(-(combination.slope * draws + combination.offset)))
        assert p.mean() == pytest.approx(prevalence, rel=0.02)


def test_mean_and_spread_keep_enough_labels():
    scores = np.random.default_rng(0).normal(size=(2, 12))
    likely = np.zeros((2, 12), dtype=bool)
    likely[0, :2], likely[1, :3] = True, True
    expected = [
        [scores[0, 2:].mean(), scores[0, 2:].std()],
        [scores[1].mean(), scores[1].std()],  # nine would be too few
    ]
    np.testing.assert_allclose(mean_and_spread(scores, likely), expected)
    assert mean_and_spread(np.ones((1, 12)), likely[:1])[0, 1] == 0.02


def test_a_few_frequent_labels_do_not_decide_how_often_others_are_expected():
    classifier = Classifier()
    classifier.label_prevalence_ = np.array([0.9, *[0.01] * 11])
    model = lw.XML0Plus.from_fitted(classifier, encoder="tfidf")
    assert model.expected_prevalence_ == pytest.approx(0.01)  # the mean is 0.08
    classifier.label_prevalence_ = np.full(12, np.nan)
    assert lw.XML0Plus.from_fitted(classifier, encoder="tfidf").expected_prevalence_ is None

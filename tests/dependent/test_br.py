"""Binary relevance against scikit-learn's classifiers fitted one by one."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelweave.capabilities import capabilities
from labelweave.dependent.br import BinaryRelevance
from labelweave.exceptions import InputError


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 8))
    Y = (X @ rng.normal(size=(8, 4)) + rng.normal(size=(150, 4)) > 0.8).astype(float)
    return X, Y


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(C=0.3),
        GaussianNB(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(5, random_state=3),
    ],
)
@pytest.mark.parametrize("unknown", [0.0, 0.3])
def test_equals_the_classifiers_one_by_one(data, estimator, unknown):
    X, Y = data
    Y[np.random.default_rng(1).random(Y.shape) < unknown] = np.nan
    probabilities = BinaryRelevance(estimator).fit(X, Y).predict_proba(X)
    for j in range(Y.shape[1]):
        known = ~np.isnan(Y[:, j])
        expected = estimator.fit(X[known], Y[known, j]).predict_proba(X)[:, 1]
        np.testing.assert_allclose(probabilities[:, j], expected, atol=1e-6)


@pytest.mark.parametrize("estimator", [LinearSVC(), SVC(), Perceptron()])
def test_decision_values_are_squashed(data, estimator):
    X, Y = data
    model = BinaryRelevance(estimator).fit(X, Y)
    probability = model.predict_proba(X)
    for j in range(Y.shape[1]):
        decision = estimator.fit(X, Y[:, j]).decision_function(X)
        np.testing.assert_allclose(probability[:, j], 1 / (1 + np.exp(-decision)), rtol=1e-5)
        np.testing.assert_array_equal(model.predict(X)[:, j], estimator.predict(X))


def test_linear_models_keep_their_weights_only(data):
    X, Y = data
    model = BinaryRelevance().fit(X, Y)
    assert model.coef_.shape == (4, 8)
    assert model.estimators_ == []
    trees = BinaryRelevance(RandomForestClassifier(2)).fit(X, Y)
    assert trees.coef_ is None
    assert len(trees.estimators_) == 4


@pytest.mark.parametrize("estimator", [None, RandomForestClassifier(5, random_state=0)])
def test_constant_labels_get_laplaces_rate(data, estimator):
    X, Y = data
    Y[:, 1] = 0
    Y[:, 2] = np.where(np.arange(150) < 10, 1, np.nan)
    probability = BinaryRelevance(estimator).fit(X, Y).predict_proba(X)
    np.testing.assert_allclose(probability[:, 1], 1 / 152)
    np.testing.assert_allclose(probability[:, 2], 11 / 12)


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sparse_features_and_labels_give_the_same(index):
    rng = np.random.default_rng(2)
    X = (rng.random((120, 30)) < 0.2) * rng.random((120, 30))
    Y = (X[:, :5] > 0.4).astype(float)
    estimator = LogisticRegression(solver="liblinear")  # takes 32-bit indices only
    dense = BinaryRelevance(estimator).fit(X, Y).predict_proba(X)
    features = sp.csr_array(X)
    features.indices = features.indices.astype(index)
    features.indptr = features.indptr.astype(index)
    probabilities = (
        BinaryRelevance(estimator).fit(features, sp.csr_array(Y)).predict_proba(features)
    )
    np.testing.assert_allclose(probabilities, dense, rtol=1e-6)


def test_each_label_has_a_seed_of_its_own(data):
    X, Y = data
    Y[:, 1] = Y[:, 0]
    forest = RandomForestClassifier(3)
    first, again = (
        BinaryRelevance(forest, random_state=5).fit(X, Y).predict_proba(X) for _ in range(2)
    )
    other = BinaryRelevance(forest, random_state=6).fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
    assert (first[:, 0] != first[:, 1]).any()


def test_without_a_seed_numpys_global_generator_is_left_alone(data):
    before = np.random.get_state()[2]  # noqa: NPY002 - it is what this is about
    forest = BinaryRelevance(RandomForestClassifier(3))
    one, other = (forest.fit(*data).predict_proba(data[0]) for _ in range(2))
    assert np.random.get_state()[2] == before  # noqa: NPY002
    assert (one != other).any()


def test_a_seed_of_the_classifier_is_kept_where_no_other_is_given(data):
    forest = BinaryRelevance(RandomForestClassifier(3, random_state=4))
    one, other = (forest.fit(*data).predict_proba(data[0]) for _ in range(2))
    np.testing.assert_array_equal(one, other)


def test_features_of_very_different_sizes_are_learnt_to_the_end():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 20))
    Y = (X[:, :1] + X[:, 1:2] + rng.normal(size=(100, 1)) > 0).astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a solver that gives up warns
        BinaryRelevance().fit(X * np.logspace(-3, 3, 20), Y)


def test_parallel_gives_the_same(data):
    X, Y = data
    one = BinaryRelevance().fit(X, Y).predict_proba(X)
    np.testing.assert_array_equal(BinaryRelevance(n_jobs=2).fit(X, Y).predict_proba(X), one)


@pytest.mark.parametrize("estimator", [LinearRegression(), LogisticRegression, 3])
def test_what_is_no_classifier_is_refused(data, estimator):
    with pytest.raises(ValueError, match="estimator"):
        BinaryRelevance(estimator).fit(*data)


def test_a_classifier_without_scores_is_refused(data):
    class Silent(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.zeros(len(X))

    with pytest.raises(InputError, match="neither predict_proba nor decision_function"):
        BinaryRelevance(Silent()).fit(*data)


@parametrize_with_checks([BinaryRelevance(GaussianNB())])
def test_scikit_learn_accepts_it(estimator, check):
    check(estimator)


def test_weights_of_rows_and_of_positives_are_those_of_scikit_learn():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    Y = (X[:, :2] + random.normal(size=(80, 2)) > [0.5, 1.5]).astype(float)
    weight = random.random(80) + 0.1
    Y[::7, 0] = np.nan
    known = ~np.isnan(Y[:, 0])

    def expected(rows, j, weight=None, **settings):
        model = LogisticRegression(max_iter=10_000, **settings)
        return model.fit(X[rows], Y[rows, j], sample_weight=weight).predict_proba(X)[:, 1]

    every = slice(None)
    model = BinaryRelevance().fit(X, Y, sample_weight=weight)
    probabilities = model.predict_proba(X)
    np.testing.assert_allclose(probabilities[:, 0], expected(known, 0, weight[known]), rtol=1e-6)
    np.testing.assert_allclose(probabilities[:, 1], expected(every, 1, weight), rtol=1e-6)
    balanced = BinaryRelevance(class_weight="balanced").fit(X, Y).predict_proba(X)
    by_hand = {"class_weight": "balanced"}
    np.testing.assert_allclose(balanced[:, 0], expected(known, 0, **by_hand), rtol=1e-4)
    np.testing.assert_allclose(balanced[:, 1], expected(every, 1, **by_hand), rtol=1e-4)
    labels = pd.DataFrame(Y, columns=["sea", "sun"])
    of_sun = BinaryRelevance(class_weight={"sun": 5}).fit(X, labels).predict_proba(X)
    by_hand = {"class_weight": {0: 1, 1: 5}}
    np.testing.assert_allclose(of_sun[:, 0], expected(known, 0), rtol=1e-6)
    np.testing.assert_allclose(of_sun[:, 1], expected(every, 1, **by_hand), rtol=1e-4)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"class_weight": {"rain": 2}}, "class_weight names 'rain', which is no label"),
        ({"class_weight": {"sea": -1}}, "class_weight of 'sea' is -1, not a positive number"),
        (
            {"class_weight": "balanced", "estimator": KNeighborsClassifier()},
            "class_weight needs an estimator whose fit takes sample_weight, which KNeighbors",
        ),
    ],
)
def test_wrong_weights_of_positives(settings, words):
    with pytest.raises(InputError, match=words):
        BinaryRelevance(**settings).fit(np.eye(4), [["sea"], [], ["sea"], []])


def test_an_estimator_without_weights():
    model = BinaryRelevance(KNeighborsClassifier(1))
    assert not capabilities(model).sample_weight
    with pytest.raises(InputError, match="this BinaryRelevance takes no sample_weight"):
        model.fit(np.eye(4), [["a"], [], ["a"], []], sample_weight=np.ones(4))

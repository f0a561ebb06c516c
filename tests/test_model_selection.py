"""Splitters, scorers and out-of-fold probabilities, inside scikit-learn's own tools."""

import pickle

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelweave.dependent.mlknn import MLkNN
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.labels import as_labels
from labelweave.metrics import get_metric
from labelweave.model_selection import (
    MultiLabelKFold,
    MultiLabelShuffleSplit,
    cross_val_predict_proba,
    label_probabilities,
    make_scorer,
)

FORMS = ["array", "csr_array", "csr_matrix", "DataFrame", "LabelMatrix", "sparse LabelMatrix"]


def make_problem(n_rows=90, n_labels=4, unknown=0.1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 5))
    Y = (X @ rng.normal(size=(5, n_labels)) > 0.5).astype(float)
    Y[rng.random(Y.shape) < unknown] = np.nan
    return X, Y


def in_form(Y, form):
    marked = sp.csr_array(np.where(np.isnan(Y), 2.0, Y))
    marked.data[marked.data == 2] = np.nan
    return {
        "array": lambda: Y,
        "csr_array": lambda: marked,
        "csr_matrix": lambda: sp.csr_matrix(marked),
        "DataFrame": lambda: pd.DataFrame(Y, columns=[f"l{j}" for j in range(Y.shape[1])]),
        "LabelMatrix": lambda: as_labels(Y),
        "sparse LabelMatrix": lambda: as_labels(marked),
    }[form]()


# -- splitters -------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_folds_are_the_same_for_all_forms_of_labels(form):
    X, Y = make_problem()
    splitter = MultiLabelKFold(4, n_repeats=2, random_state=0)
    splits = list(splitter.split(X, in_form(Y, form)))
    expected = list(splitter.split(X, Y))
    assert len(splits) == splitter.get_n_splits() == 8
    for (train, test), (train_expected, test_expected) in zip(splits, expected, strict=True):
        np.testing.assert_array_equal(train, train_expected)
        np.testing.assert_array_equal(test, test_expected)


def test_each_repeat_tests_every_row_once_and_differs():
    X, Y = make_problem()
    splits = list(MultiLabelKFold(3, n_repeats=2, random_state=0).split(X, Y))
    for repeat in (splits[:3], splits[3:]):
        tested = np.concatenate([test for _, test in repeat])
        assert sorted(tested) == list(range(len(Y)))
        for train, test in repeat:
            assert sorted([*train, *test]) == list(range(len(Y)))
    assert any(set(a[1]) != set(b[1]) for a, b in zip(splits[:3], splits[3:], strict=True))


def test_shuffle_splits_have_the_size_asked_for():
    X, Y = make_problem()
    splitter = MultiLabelShuffleSplit(4, test_size=0.3, random_state=0)
    splits = list(splitter.split(X, Y))
    assert len(splits) == splitter.get_n_splits() == 4
    assert {len(test) for _, test in splits} == {27}
    assert len({tuple(test) for _, test in splits}) == 4


@pytest.mark.parametrize(
    "splitter", [MultiLabelKFold(3, random_state=0), MultiLabelShuffleSplit(3, random_state=0)]
)
def test_splitters_keep_groups_together(splitter):
    X, Y = make_problem()
    groups = np.arange(90) // 3
    for train, test in splitter.split(X, Y, groups):
        assert not set(groups[train]) & set(groups[test])
    scores = cross_validate(
        MLkNN(k=3), X, Y, groups=groups, cv=splitter, scoring=make_scorer("map")
    )
    assert len(scores["test_score"]) == 3


@pytest.mark.parametrize(
    "splitter", [MultiLabelKFold(3, random_state=0), MultiLabelShuffleSplit(3, random_state=0)]
)
def test_splitters_keep_equal_rows_together(splitter):
    X, Y = make_problem()
    X = X[np.arange(90) // 2]
    for train, test in splitter.split(X, Y):
        assert not set(train // 2) & set(test // 2)
    groups = np.arange(90) % 30
    for train, test in splitter.split(X, Y, groups):
        assert not set(groups[train]) & set(groups[test])
        assert not set(train // 2) & set(test // 2)


def test_splitters_take_features_that_are_all_equal_as_none():
    _, Y = make_problem()
    with pytest.warns(LabelweaveWarning, match="3 parts cannot be made of 1 different rows"):
        splits = list(MultiLabelKFold(3, random_state=0).split(np.zeros(90), Y))
    assert [len(test) for _, test in splits] == [30, 30, 30]


def test_splitters_say_what_they_need():
    X, Y = make_problem()
    with pytest.raises(InputError, match="MultiLabelKFold splits by the labels: pass y"):
        MultiLabelKFold(3).split(X)
    with pytest.raises(InputError, match="91 folds cannot be made of 90 rows"):
        list(MultiLabelKFold(91).split(X, Y))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        MultiLabelKFold(3).split(X[:5], Y)
    assert repr(MultiLabelKFold(3)).startswith("MultiLabelKFold(")


# -- scorers ---------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("metric", ["f1_example", "map"])
def test_grid_search_accepts_unknown_labels_in_every_form(form, metric):
    X, Y = make_problem()
    search = GridSearchCV(
        MLkNN(),
        {"k": [1, 15]},
        cv=MultiLabelKFold(3, random_state=0),
        scoring=make_scorer(metric),
        error_score="raise",
    ).fit(X, in_form(Y, form))
    needs_scores = get_metric(metric).needs == "score"
    for number, k in enumerate([1, 15]):
        by_hand = []
        for train, test in MultiLabelKFold(3, random_state=0).split(X, Y):
            model = MLkNN(k=k).fit(X[train], Y[train])
            predicted = model.predict_proba(X[test]) if needs_scores else model.predict(X[test])
            by_hand.append(get_metric(metric)(Y[test], Y_score=predicted, Y_pred=predicted))
        measured = [search.cv_results_[f"split{i}_test_score"][number] for i in range(3)]
        np.testing.assert_allclose(measured, by_hand)
    assert search.predict(X).shape == Y.shape


def test_scikit_learn_alone_refuses_what_the_module_says_it_refuses():
    X, Y = make_problem()
    with pytest.raises(ValueError, match="NaN"):
        cross_val_score(MLkNN(), X, Y, cv=3, scoring=make_scorer("map"), error_score="raise")
    with pytest.raises(ValueError, match="NaN"):
        cross_val_score(
            MLkNN(), X, Y, cv=MultiLabelKFold(3), scoring="f1_micro", error_score="raise"
        )


def test_losses_are_negated_and_several_metrics_share_one_prediction():
    X, Y = make_problem()
    model = CountingKNN().fit(X, Y)
    scores = make_scorer(["hamming_loss", "subset_accuracy", "map", "one_error"])(model, X, Y)
    assert list(scores) == ["neg_hamming_loss", "subset_accuracy", "map", "neg_one_error"]
    predicted = model.model_.predict(X)
    assert scores["neg_hamming_loss"] == -get_metric("hamming_loss")(Y, Y_pred=predicted)
    assert model.calls_ == ["predict_proba", "predict"]
    assert make_scorer("hamming_loss")(model, X, Y) == scores["neg_hamming_loss"]


class CountingKNN(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.model_ = MLkNN(k=5).fit(X, y)
        self.calls_ = []
        return self

    def predict(self, X):
        self.calls_.append("predict")
        return self.model_.predict(X)

    def predict_proba(self, X):
        self.calls_.append("predict_proba")
        return self.model_.predict_proba(X)


def test_several_metrics_in_a_grid_search():
    X, Y = make_problem()
    search = GridSearchCV(
        MLkNN(),
        {"k": [1, 15]},
        cv=MultiLabelKFold(3, random_state=0),
        scoring=make_scorer(["map", "hamming_loss"]),
        refit="neg_hamming_loss",
        error_score="raise",
    ).fit(X, Y)
    assert {"mean_test_map", "mean_test_neg_hamming_loss"} <= set(search.cv_results_)
    assert search.best_score_ == search.cv_results_["mean_test_neg_hamming_loss"].max()


def test_scorers_bring_labels_into_the_models_order():
    X, Y = make_problem()
    labels = as_labels(Y, names=list("abcd"))
    model = MLkNN().fit(X, labels)
    scorer = make_scorer("map")
    assert scorer(model, X, labels.select("dbca")) == scorer(model, X, labels)
    frame = labels.select("cdab").to_frame()
    assert scorer(model, X, frame) == scorer(model, X, labels)


def test_scorers_pass_parameters_and_weights_and_can_be_pickled():
    X, Y = make_problem()
    model = MLkNN().fit(X, Y)
    weights = np.r_[np.zeros(60), np.ones(30)]
    scorer = pickle.loads(pickle.dumps(make_scorer("subset_accuracy")))
    expected = get_metric("subset_accuracy")(Y[60:], Y_pred=model.predict(X[60:]))
    assert scorer(model, X, Y, sample_weight=weights) == pytest.approx(expected)
    propensities = np.full(4, 0.5)
    scorer = make_scorer("psp@1", propensities=propensities)
    assert 0 <= scorer(model, X, Y) <= 1


def test_unknown_metrics_are_refused():
    with pytest.raises(InputError, match="there is no metric 'f1_sample'"):
        make_scorer("f1_sample")
    with pytest.raises(InputError, match="at least one metric"):
        make_scorer([])


# -- probabilities ---------------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        RandomForestClassifier(5, random_state=0),
        KNeighborsClassifier(3),
        MultiOutputClassifier(LogisticRegression()),
        OneVsRestClassifier(LogisticRegression()),
        make_pipeline(StandardScaler(), RandomForestClassifier(5, random_state=0)),
        RidgeClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_probabilities_of_scikit_learns_models_become_one_array(model):
    X, Y = make_problem(unknown=0)
    Y = Y.astype(int)
    scores = label_probabilities(model.fit(X, Y), X)
    assert scores.shape == Y.shape
    cut = 0 if isinstance(model, RidgeClassifier) else 0.5
    agree = ((scores > cut) == model.predict(X)).mean()
    assert agree > 0.99


def test_labels_with_a_single_class_in_training():
    X, Y = make_problem(unknown=0)
    Y[:, 1], Y[:, 2] = 0, 1
    model = RandomForestClassifier(3, random_state=0).fit(X, Y)
    probabilities = label_probabilities(model, X)
    assert (probabilities[:, 1] == 0).all()
    assert (probabilities[:, 2] == 1).all()


def test_models_without_scores_are_refused():
    class Silent:
        pass

    with pytest.raises(InputError, match="Silent has neither predict_proba"):
        label_probabilities(Silent(), None)


# -- out-of-fold -----------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_out_of_fold_probabilities_are_those_of_models_that_did_not_see_the_row(form):
    X, Y = make_problem()
    expected = np.empty(Y.shape)
    for train, test in MultiLabelKFold(3, random_state=0).split(X, Y):
        expected[test] = MLkNN(k=5).fit(X[train], Y[train]).predict_proba(X[test])
    model = MLkNN(k=5)
    measured = cross_val_predict_proba(model, X, in_form(Y, form), cv=3)
    np.testing.assert_allclose(measured, expected)
    assert not hasattr(model, "n_labels_")  # clones were fitted


def test_out_of_fold_in_parallel_equals_one_by_one():
    X, Y = make_problem()
    one, two = (cross_val_predict_proba(MLkNN(k=5), X, Y, cv=4, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one, two)


def test_repeated_folds_are_averaged():
    X, Y = make_problem()
    splits = list(MultiLabelKFold(3, n_repeats=2, random_state=1).split(X, Y))
    halves = [cross_val_predict_proba(MLkNN(), X, Y, cv=s) for s in (splits[:3], splits[3:])]
    averaged = cross_val_predict_proba(MLkNN(), X, Y, cv=splits)
    np.testing.assert_allclose(averaged, np.mean(halves, axis=0))


def test_out_of_fold_with_groups_sparse_features_and_frames():
    X, Y = make_problem()
    groups = np.arange(90) // 3
    splits = list(MultiLabelKFold(3, random_state=0).split(X, Y, groups))
    expected = cross_val_predict_proba(MLkNN(), X, Y, cv=splits)
    for features in (X, sp.csr_array(X), pd.DataFrame(X)):
        measured = cross_val_predict_proba(MLkNN(), features, Y, cv=3, groups=groups)
        np.testing.assert_allclose(measured, expected, atol=1e-6)


def test_out_of_fold_for_plain_scikit_learn_models():
    X, Y = make_problem(unknown=0)
    Y = Y.astype(int)
    model = RandomForestClassifier(5, random_state=0)
    measured = cross_val_predict_proba(model, X, Y, cv=3)
    train, test = next(MultiLabelKFold(3, random_state=0).split(X, Y))
    expected = label_probabilities(clone(model).fit(X[train], Y[train]), X[test])
    np.testing.assert_allclose(measured[test], expected)


def test_lists_of_names_give_every_fold_the_same_labels():
    X, Y = make_problem(unknown=0)
    labels = as_labels(Y, names=["sea", "sky", "sun", "tree"])
    expected = cross_val_predict_proba(MLkNN(), X, labels, cv=3)
    measured = cross_val_predict_proba(MLkNN(), X, labels.to_lists(), cv=3)
    np.testing.assert_allclose(measured, expected)


def test_rows_that_are_never_tested_are_an_error():
    X, Y = make_problem()
    splits = [(np.arange(50), np.arange(50, 90))]
    with pytest.raises(InputError, match="row 0 is in no test part"):
        cross_val_predict_proba(MLkNN(), X, Y, cv=splits)

"""The contract's common part, seen through the smallest possible method."""

import re

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.utils.estimator_checks import parametrize_with_checks

import labelweave as lw
from labelweave.base import MultiLabelClassifier
from labelweave.exceptions import InputError
from labelweave.labels import as_labels


class Nearest(MultiLabelClassifier):
    """The labels of the nearest training row, softened a little."""

    def __init__(self, *, threshold=0.5, validation_fraction=0.2, random_state=None):
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(self, X, Y, validation):
        self.X_, self.Y_ = X, np.nan_to_num(Y.to_numpy(), nan=0.5)
        self.n_validation_ = 0 if validation is None else len(validation[1])

    def _predict_proba(self, X):
        from sklearn.metrics import pairwise_distances_argmin

        return 0.1 + 0.8 * self.Y_[pairwise_distances_argmin(X, self.X_)]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    return X, (X @ rng.normal(size=(3, 4)) > 0).astype(int)


@parametrize_with_checks([Nearest()])
def test_scikit_learn_accepts_the_base(estimator, check):
    check(estimator)


def test_names_come_from_wherever_they_are(rows):
    X, Y = rows
    names = ["a", "b", "c", "d"]
    for form in (
        pd.DataFrame(Y, columns=names),
        as_labels(Y, names=names),
        as_labels(Y, names=names).to_lists(),
    ):
        model = Nearest().fit(X, form)
        assert list(model.label_names_) == names
        np.testing.assert_array_equal(model.predict(X), Y)
    assert model.predict_labels(X) == as_labels(Y, names=names).to_lists()
    assert list(Nearest().fit(X, Y).label_names_) == [f"label_{j}" for j in range(4)]


def test_rates_are_shares_among_the_known_entries_of_all_rows(rows):
    X, Y = rows
    labels = Y.astype(float)
    labels[:10, 0] = np.nan
    model = Nearest(threshold="tuned", random_state=0).fit(X, labels)
    assert model.n_validation_ > 0
    assert np.allclose(model.label_prevalence_, np.nanmean(labels, axis=0))
    flat = Nearest().fit(X, Y[:, 0])
    assert np.allclose(flat.label_prevalence_, [1 - Y[:, 0].mean(), Y[:, 0].mean()])


def test_two_labels_work_with_scikit_learns_scorers(rows):
    from sklearn.metrics import get_scorer
    from sklearn.model_selection import GridSearchCV

    X, Y = rows
    Y = Y[:, :2]
    model = Nearest().fit(X, Y)
    assert get_scorer("roc_auc")(model, X, Y) == 1
    search = GridSearchCV(
        Nearest(), {"threshold": [0.3, 0.5]}, scoring="roc_auc", cv=3, refit=False
    )
    assert np.isfinite(search.fit(X, Y).cv_results_["mean_test_score"]).all()


def test_one_column_may_be_a_label_or_a_class(rows):
    X, Y = rows
    indicator = Nearest().fit(X, Y[:, :1])
    assert indicator.predict(X).shape == (40, 1)
    classes = np.array(["no", "yes"])[Y[:, :1]]
    single = Nearest().fit(X, classes)
    assert set(single.predict(X)) == {"no", "yes"}
    np.testing.assert_allclose(single.predict_proba(X).sum(axis=1), 1)


def test_validation_labels_are_matched_by_name(rows):
    X, Y = rows
    frame = pd.DataFrame(Y, columns=list("abcd"))
    model = Nearest(threshold="tuned").fit(X, frame, validation=(X[:10], frame[:10][list("dcba")]))
    assert model.n_validation_ == 10
    same = Nearest(threshold="tuned").fit(X, frame, validation=(X[:10], frame[:10]))
    assert model.threshold_.to_dict() == same.threshold_.to_dict()


def test_rows_are_held_out_only_when_something_is_tuned(rows):
    X, Y = rows
    assert Nearest().fit(X, Y).n_validation_ == 0
    tuned = Nearest(threshold="tuned", validation_fraction=0.25, random_state=0).fit(X, Y)
    assert tuned.n_validation_ == 10
    assert len(tuned.X_) == 30
    with pytest.raises(InputError, match="3 rows are too few to tune a threshold"):
        Nearest(threshold="tuned").fit(X[:3], Y[:3])


def test_a_threshold_is_chosen_without_labels_where_it_looks_at_none(rows):
    X, Y = rows
    model = Nearest().fit(X, Y)
    expected = model.predict_proba(X).sum(axis=1).mean()
    model.tune_threshold(X, threshold="cardinality")
    assert model.threshold_.expected_ == pytest.approx(expected)
    with_labels = Nearest().fit(X, Y).tune_threshold(X, Y, "cardinality").threshold_
    assert with_labels.value_ == model.threshold_.value_
    for rule in ("tuned", "cardinality:labels"):
        with pytest.raises(InputError, match="pass y"):
            model.tune_threshold(X, threshold=rule)


def test_score_leaves_unknown_entries_out(rows):
    X, Y = rows
    model = Nearest().fit(X, Y)
    wrong = Y.astype(float)
    wrong[0, 0] = 1 - wrong[0, 0]
    assert model.score(X, wrong) == pytest.approx(39 / 40)
    wrong[0, 0] = np.nan
    assert model.score(X, wrong) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (_with(X, (3, 2), np.nan), Y), "NaN at row 3, column 2"),
        (lambda X, Y: (_with(X, (0, 1), -np.inf), Y), "infinity at row 0, column 1"),
        (lambda X, Y: (sp.csr_array(_with(X, (3, 2), np.nan)), Y), "NaN at row 3, column 2"),
        (lambda X, Y: (X, np.where(np.arange(4) == 1, np.nan, Y)), "'label_1' has no known entry"),
        (lambda X, Y: (X, Y[:, :0]), "at least one column"),
        (lambda X, Y: (X, None), "requires y"),
        (lambda X, Y: (["a text"] * len(Y), Y), r"holds texts.*TextClassifier\(Nearest"),
        (lambda X, Y: (pd.Series(["a text"] * len(Y)), Y), r"holds texts"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(rows, change, message):
    with pytest.raises(InputError, match=message) as caught:
        Nearest().fit(*change(*rows))
    assert "\n" not in str(caught.value)


def test_labels_that_do_not_fit_the_model_are_refused(rows):
    X, Y = rows
    model = Nearest().fit(X, Y)
    with pytest.raises(InputError, match="the model knows 4 labels"):
        model.score(X, Y[:, :2])
    with pytest.raises(InputError, match="a Dataset or a pair"):
        model.fit(X, Y, validation=3)


def _with(X, where, value):
    X = X.copy()
    X[where] = value
    return X


def test_fit_is_defined_in_the_base_and_in_the_bases_of_rooms_alone():
    owners = set()
    for method in lw.list_methods():
        cls = method.load()
        owner = next(base for base in cls.__mro__ if "fit" in vars(base))
        owners.add(owner.__name__)
    rooms = {"PartialClassifier", "TeacherMethod", "ZeroShotClassifier"}
    assert owners == {"MultiLabelClassifier", "WeightedClassifier", *rooms}


def test_a_number_that_is_too_large_is_named_with_its_column(rows):
    X, Y = rows
    X = pd.DataFrame(X, columns=[f"size {j}" for j in range(X.shape[1])])
    model = Nearest().fit(X, Y)
    X.iloc[2, 1] = 1e300
    message = re.escape("X contains 1e+300 at row 2, column 1 ('size 1'), but numbers beyond 2**64")
    with pytest.raises(InputError, match=message):
        model.predict_proba(X)
    with pytest.raises(InputError, match=message):
        Nearest().fit(X, Y)


def test_a_probability_that_is_no_number_is_refused(rows):
    X, Y = rows
    model = Nearest().fit(X, Y)
    model._predict_proba = lambda X: np.where(np.arange(len(X))[:, None] == 3, np.nan, 0.5)
    with pytest.raises(InputError, match="no finite probability for row 3 of X"):
        model.predict_proba(X)

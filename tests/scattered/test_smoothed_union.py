"""The smoothed union against slow re-computations."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scattered_data import enumerated, fake_chains
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from labelweave.metrics import zero_one_loss
from labelweave.scattered.smoothed_union import SmoothedUnion
from labelweave.scattered.smoothed_union_counts import (
    count_probabilities,
    count_weights,
    reweight_by_count,
    sharpened_counts,
)
from labelweave.scattered.teacher import Teacher
from labelweave.scattered.union import TeacherUnion


def test_without_its_steps_it_is_the_union():
    X = np.random.default_rng(0).normal(size=(50, 4))
    plain = TeacherUnion(fake_chains()).fit(X).predict_proba(X)
    off = {"drop": 0.0, "prevalence_weight": 0.0, "sharpen": 1.0, "cardinality_weight": 0.0}
    same = SmoothedUnion(fake_chains(), **off).fit(X)
    assert same.notes_["copies"] == 0
    assert np.allclose(same.predict_proba(X), plain, atol=1e-6)


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_the_number_of_predicted_labels_lies_between_two_of_the_union(weight):
    X = np.random.default_rng(0).normal(size=(100, 4))
    union = TeacherUnion(fake_chains()).fit(X)
    model = SmoothedUnion(fake_chains(), cardinality_weight=weight, random_state=0).fit(X)
    smoothed, plain = model.predict_proba(X), union.predict_proba(X)
    n_labels = (1 - weight) * (plain > 0.5).sum() + weight * plain.sum()
    assert (smoothed >= 0.5).sum() == round(n_labels)
    assert not np.allclose(smoothed, plain, atol=0.02)
    assert model.counts_.shape == (6,)
    assert np.isclose(model.counts_.sum(), 1)


def test_all_steps_for_teachers_that_are_their_features():
    X = np.random.default_rng(0).normal(size=(30, 3))
    teachers = [
        Teacher(lambda rows: expit(rows[:, :2]), ["a", "b"], prevalence=[0.2, 0.3]),
        Teacher(lambda rows: expit(rows[:, 1:]), ["b", "c"], prevalence=[0.5, np.nan]),
    ]
    model = SmoothedUnion(teachers, drop=0.0, random_state=0)
    model.fit(X[:24], validation=X[24:])
    assert np.allclose(model.label_prevalence_, [0.2, 0.4, np.nan], equal_nan=True)
    half = []
    for column, share in zip(X.T, [0.2, 0.4], strict=False):
        half.append(0.5 * brentq(lambda t, z=column, s=share: expit(z + t).mean() - s, -20, 20))
    p = expit(X + np.array([*half, 0.0]))
    counts = sharpened_counts(p, 3.0)
    assert np.allclose(model.counts_, counts, atol=1e-6)
    reweighted = logit(enumerated(p, count_weights(p, counts))[1])
    n = round(0.75 * (p > 0.5).sum() + 0.25 * p.sum())
    ranked = np.sort(reweighted, axis=None)[::-1]
    shift = 0.0 if ranked[n] <= 0 < ranked[n - 1] else (ranked[n - 1] + ranked[n]) / 2
    assert np.allclose(model.predict_proba(X), expit(reweighted - shift), atol=1e-5)


def test_unknown_prevalence_changes_nothing():
    X = np.random.default_rng(0).normal(size=(60, 4))
    models = [
        SmoothedUnion(fake_chains(), prevalence_weight=weight, random_state=0).fit(X)
        for weight in (0.0, 0.5)
    ]
    assert np.isnan(models[1].label_prevalence_).all()
    assert np.array_equal(*(model.predict_proba(X) for model in models))


def test_rows_orders_and_seeds():
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = SmoothedUnion(fake_chains(), random_state=0).fit(X)
    expected = model.predict_proba(X)
    assert np.allclose(model.predict_proba(X[:1]), expected[:1], atol=1e-6)  # rows are independent
    reversed_order = SmoothedUnion(fake_chains()[::-1], random_state=0).fit(X)
    assert np.array_equal(reversed_order.predict_proba(X), expected)
    other = SmoothedUnion(fake_chains(), random_state=1).fit(X)
    assert not np.array_equal(other.predict_proba(X), expected)


@pytest.mark.parametrize("kind", ["dense", "sparse", "frame"])
def test_copies_lack_the_same_features_in_all_rows(kind):
    X = np.random.default_rng(0).poisson(2.0, size=(40, 12)).astype(np.float64)
    inputs = []

    def record(rows):
        inputs.append(rows)
        return expit(np.asarray(rows @ np.ones(12))[:, None] - 20)

    data = {"dense": X, "sparse": sp.csr_array(X), "frame": pd.DataFrame(X)}[kind]
    teachers = [Teacher(record, ["a"]), Teacher(lambda rows: record(rows) / 2, ["b"])]
    model = SmoothedUnion(teachers, drop=0.5, copies=3, random_state=0)
    with pytest.warns(UserWarning, match="no label in common"):
        model.fit(data)
    inputs.clear()
    model.predict_proba(data)
    assert len(inputs) == 6
    for rows in inputs:
        values = rows.toarray() if kind == "sparse" else np.asarray(rows)
        dropped = (values != X).any(axis=0)
        assert 0 < dropped.sum() < 12
        replacement = 0.0 if kind == "sparse" else X.mean(axis=0)[dropped]
        assert np.allclose(values[:, dropped], replacement)


def test_texts_are_predicted_as_they_are():
    texts = ["sun", "rain and sun", "rain", "snow", "sun sun", "snow and rain"] * 3
    teachers = [
        Teacher(
            lambda rows, word=word: np.array([[0.9 if word in row else 0.2] for row in rows]),
            [word],
        )
        for word in ("sun", "rain")
    ]
    with pytest.warns(UserWarning, match="no label in common"):
        model = SmoothedUnion(teachers, random_state=0).fit(texts)
    assert model.notes_["copies"] == 0
    assert model.predict_labels(["sun"]) == [["sun"]]


def test_entries_that_all_abstain_from_are_negative():
    X = np.random.default_rng(0).normal(size=(60, 3))
    teachers = [
        Teacher(lambda rows: expit(rows[:, :2]), ["a", "b"], abstain=0.1),
        Teacher(lambda rows: expit(rows[:, 1:]), ["b", "c"]),
    ]
    model = SmoothedUnion(teachers, drop=0.0, random_state=0).fit(X)
    p = dict(zip(model.label_names_, model.predict_proba(X).T, strict=True))
    unsure = np.abs(X[:, 0]) < logit(0.6)
    assert unsure.any()
    assert (p["a"][unsure] < 1e-30).all()
    assert (p["a"][~unsure] > 1e-6).all()


def test_it_estimates_that_rows_have_one_label():
    """Six classes, of which each teacher predicts four: none knows that one of six is right."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(6, 10))
    kinds = rng.integers(6, size=1200)
    X, Y = centres[kinds] + 0.9 * rng.normal(size=(1200, 10)), np.eye(6, dtype=int)[kinds]
    names = list("abcdef")
    teachers = []
    for rows, columns in ((slice(0, 200), slice(0, 4)), (slice(200, 400), slice(2, 6))):
        one = OneVsRestClassifier(LogisticRegression()).fit(X[rows], Y[rows, columns])
        teachers.append(Teacher(one, names[columns]))
    plain = TeacherUnion(teachers).fit(X[400:800])
    model = SmoothedUnion(teachers, random_state=0).fit(X[400:800])
    independent = count_probabilities(plain.predict_proba(X[400:800])).mean(axis=0)
    assert model.counts_[1] > independent[1] + 0.1
    loss, plain_loss = (zero_one_loss(Y[800:], one.predict(X[800:])) for one in (model, plain))
    assert loss < plain_loss - 0.05


@pytest.mark.parametrize("threshold", [0.5, 0.1])
def test_the_number_of_labels_is_that_of_probabilities_not_of_values_relative_to_thresholds(
    threshold,
):
    X = np.random.default_rng(0).normal(size=(200, 6)) - 2
    teachers = [
        Teacher(lambda rows: expit(rows[:, :4]), list("abcd"), threshold=threshold),
        Teacher(lambda rows: expit(rows[:, 2:]), list("cdef"), threshold=threshold),
    ]
    model = SmoothedUnion(teachers, drop=0.0, cardinality_weight=0.0, random_state=0).fit(X)
    union = TeacherUnion(teachers).fit(X)
    p = expit(X)
    np.testing.assert_allclose(model.counts_, sharpened_counts(p, 3.0), atol=1e-4)
    offset = logit(threshold)
    reweighted = reweight_by_count(p, count_weights(p, model.counts_))
    shifted = logit(reweighted) - offset
    expected = expit(shifted - (shifted - logit(model.predict_proba(X)))[0, 0])
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=1e-4)
    assert model.predict(X).sum() == union.predict(X).sum()


def test_the_number_of_labels_of_texts_is_left_as_it_is():
    texts = [f"{'x' * i} {'y' * (i % 7)}" for i in range(40)]

    def lengths(rows):
        return expit(np.array([[len(one) - 19.5, one.count("y") - 2.5, -2] for one in rows]) / 3)

    teachers = [
        Teacher(lengths, list("abc")),
        Teacher(lambda rows: lengths(rows)[:, 1:], list("bc")),
    ]
    union = TeacherUnion(teachers).fit(texts).predict_proba(texts)
    model = SmoothedUnion(teachers, cardinality_weight=0.0).fit(texts)
    np.testing.assert_allclose(model.predict_proba(texts), union, atol=1e-5)

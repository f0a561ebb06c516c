"""The smoothed union, and beliefs about the number of labels, against slow re-computations."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scattered_data import fake_chains
from scipy.optimize import brentq
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier

from labelweave.exceptions import InputError
from labelweave.metrics import zero_one_loss
from labelweave.scattered import label_counts
from labelweave.scattered.label_counts import (
    count_chances,
    count_weights,
    reweighted,
    sharpened_counts,
)
from labelweave.scattered.label_rates import rate_shift
from labelweave.scattered.smoothed_union import SmoothedUnion
from labelweave.scattered.teacher import Teacher
from labelweave.scattered.union import TeacherUnion


def enumerated(p, weights):
    """Chances of counts, and probabilities under weights, over all label sets of each row."""
    sets = np.array(list(product([0, 1], repeat=p.shape[1])))
    size = sets.sum(axis=1)
    chance = np.where(sets, p[:, None], 1 - p[:, None]).prod(axis=2)
    counts = np.stack([chance[:, size == k].sum(axis=1) for k in range(p.shape[1] + 1)], axis=1)
    joint = chance * weights[np.minimum(size, len(weights) - 1)]
    return counts, (joint @ sets) / joint.sum(axis=1, keepdims=True)


def some_probabilities(rows=40, labels=5, seed=0):
    return np.random.default_rng(seed).uniform(0.01, 0.99, size=(rows, labels))


def test_counts_are_those_of_all_label_sets():
    p, weights = some_probabilities(), np.array([0.1, 1.0, 0.7, 0.2, 0.05, 0.6])
    counts, found = enumerated(p, weights)
    assert np.allclose(count_chances(p), counts)
    assert np.allclose(reweighted(p, weights), found)


def test_many_labels_count_as_the_most(monkeypatch):
    monkeypatch.setattr(label_counts, "MOST_COUNTED", 2)
    p, weights = some_probabilities(), np.array([0.2, 1.0, 0.3])
    counts, found = enumerated(p, weights)
    assert np.allclose(count_chances(p), np.column_stack([counts[:, :2], counts[:, 2:].sum(1)]))
    assert np.allclose(reweighted(p, weights), found)


def test_blocks_of_rows_change_nothing(monkeypatch):
    p, weights = some_probabilities(), np.array([0.1, 1.0, 0.7, 0.2, 0.05, 0.6])
    whole = reweighted(p, weights)
    monkeypatch.setattr(label_counts, "row_chunks", lambda n, _: [slice(0, 7), slice(7, n)])
    assert np.array_equal(reweighted(p, weights), whole)


def test_weights_bring_about_the_counts_that_are_wanted():
    p, wanted = some_probabilities(200, 4), np.array([0.05, 0.6, 0.3, 0.04, 0.01])
    found = count_chances(p) * count_weights(p, wanted)
    assert np.allclose(np.mean(found / found.sum(1, keepdims=True), axis=0), wanted, atol=0.02)
    as_it_is = count_chances(p).mean(axis=0)
    assert np.allclose(reweighted(p, count_weights(p, as_it_is)), p)
    assert np.allclose(sharpened_counts(p, 1.0), as_it_is)


def test_without_its_steps_it_is_the_union():
    X = np.random.default_rng(0).normal(size=(50, 4))
    plain = TeacherUnion(fake_chains()).fit(X).predict_proba(X)
    same = SmoothedUnion(fake_chains(), drop=0.0, rates=0.0, sharpen=1.0, expected=0.0).fit(X)
    assert same.notes_["copies"] == 0
    assert np.allclose(same.predict_proba(X), plain, atol=1e-6)


@pytest.mark.parametrize("expected", [0.0, 0.25, 1.0])
def test_as_many_labels_as_the_union_finds_or_expects_on_the_rows_of_fit(expected):
    X = np.random.default_rng(0).normal(size=(100, 4))
    union = TeacherUnion(fake_chains()).fit(X)
    model = SmoothedUnion(fake_chains(), expected=expected, random_state=0).fit(X)
    found, plain = model.predict_proba(X), union.predict_proba(X)
    wanted = (1 - expected) * (plain > 0.5).sum() + expected * plain.sum()
    assert (found >= 0.5).sum() == round(wanted)
    assert not np.allclose(found, plain, atol=0.02)
    assert model.counts_.shape == (6,)
    assert np.isclose(model.counts_.sum(), 1)


def test_log_odds_go_half_way_to_the_rates_of_the_teachers():
    """All steps again, row by row and label by label, for teachers that are their features."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    teachers = [
        Teacher(lambda rows: expit(rows[:, :2]), ["a", "b"], rates=[0.2, 0.3]),
        Teacher(lambda rows: expit(rows[:, 1:]), ["b", "c"], rates=[0.5, np.nan]),
    ]
    model = SmoothedUnion(teachers, drop=0.0, random_state=0)
    model.fit(X[:24], validation=X[24:])
    assert np.allclose(model.label_prevalence_, [0.2, 0.4, np.nan], equal_nan=True)
    half = []
    for column, rate in zip(X.T, [0.2, 0.4], strict=False):
        half.append(0.5 * brentq(lambda t, z=column, r=rate: expit(z + t).mean() - r, -20, 20))
    p = expit(X + np.array([*half, 0.0]))
    wanted = sharpened_counts(p, 3.0)
    assert np.allclose(model.counts_, wanted, atol=1e-6)
    counted = logit(enumerated(p, count_weights(p, wanted))[1])
    n = round(0.75 * (p > 0.5).sum() + 0.25 * p.sum())
    order = np.sort(counted, axis=None)[::-1]
    cut = 0.0 if order[n] <= 0 < order[n - 1] else (order[n - 1] + order[n]) / 2
    assert np.allclose(model.predict_proba(X), expit(counted - cut), atol=1e-5)


def test_rates_that_no_teacher_tells_change_nothing():
    X = np.random.default_rng(0).normal(size=(60, 4))
    found = [SmoothedUnion(fake_chains(), rates=r, random_state=0).fit(X) for r in (0.0, 0.5)]
    assert np.isnan(found[1].label_prevalence_).all()
    assert np.array_equal(*(model.predict_proba(X) for model in found))


def test_a_shift_makes_labels_as_frequent_as_is_wanted():
    odds = np.random.default_rng(0).normal(size=(50, 4))
    odds[:20, 1], odds[:, 3] = np.nan, np.nan  # heard in part, and never
    shift = rate_shift(odds, np.array([0.1, 0.7, np.nan, 0.5]))
    means = np.nanmean(expit(odds[:, :2] + shift[:2]), axis=0)
    assert np.allclose(means, [0.1, 0.7], atol=1e-6)
    assert shift[2] == shift[3] == 0
    never = rate_shift(odds[:, :1], np.zeros(1))  # not seen where the teacher learnt
    assert np.isclose(expit(odds[:, 0] + never).mean(), 1e-3)


def test_rows_orders_and_seeds():
    X = np.random.default_rng(0).normal(size=(60, 4))
    model = SmoothedUnion(fake_chains(), random_state=0).fit(X)
    whole = model.predict_proba(X)
    assert np.allclose(model.predict_proba(X[:1]), whole[:1], atol=1e-6)  # no row sees another
    turned = SmoothedUnion(fake_chains()[::-1], random_state=0).fit(X)
    assert np.array_equal(turned.predict_proba(X), whole)
    other = SmoothedUnion(fake_chains(), random_state=1).fit(X)
    assert not np.array_equal(other.predict_proba(X), whole)


@pytest.mark.parametrize("kind", ["dense", "sparse", "frame"])
def test_copies_lack_the_same_features_in_all_rows(kind):
    X = np.random.default_rng(0).poisson(2.0, size=(40, 12)).astype(np.float64)
    asked = []

    def watched(rows):
        asked.append(rows)
        return expit(np.asarray(rows @ np.ones(12))[:, None] - 20)

    given = {"dense": X, "sparse": sp.csr_array(X), "frame": pd.DataFrame(X)}[kind]
    teachers = [Teacher(watched, ["a"]), Teacher(lambda rows: watched(rows) / 2, ["b"])]
    model = SmoothedUnion(teachers, drop=0.5, copies=3, random_state=0)
    with pytest.warns(UserWarning, match="no label in common"):
        model.fit(given)
    asked.clear()
    model.predict_proba(given)
    assert len(asked) == 6
    for rows in asked:
        values = rows.toarray() if kind == "sparse" else np.asarray(rows)
        gone = (values != X).any(axis=0)
        assert 0 < gone.sum() < 12
        instead = 0.0 if kind == "sparse" else X.mean(axis=0)[gone]
        assert np.allclose(values[:, gone], instead)


def test_texts_are_asked_about_as_they_are():
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
    (found,) = model.predict_labels(["sun"])
    assert found == ["sun"]


def test_entries_that_all_abstain_from_have_no_chance():
    X = np.random.default_rng(0).normal(size=(60, 3))
    teachers = [
        Teacher(lambda rows: expit(rows[:, :2]), ["a", "b"], abstain=0.1),
        Teacher(lambda rows: expit(rows[:, 1:]), ["b", "c"]),
    ]
    model = SmoothedUnion(teachers, drop=0.0, random_state=0).fit(X)
    found = dict(zip(model.label_names_, model.predict_proba(X).T, strict=True))
    unsure = np.abs(X[:, 0]) < logit(0.6)
    assert unsure.any()
    assert (found["a"][unsure] < 1e-30).all()
    assert (found["a"][~unsure] > 1e-6).all()


def test_it_learns_that_rows_have_one_label():
    """Six classes, of which each teacher knows four: none knows that one of six is right."""
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
    independent = count_chances(plain.predict_proba(X[400:800])).mean(axis=0)
    assert model.counts_[1] > independent[1] + 0.1
    lost, before = (zero_one_loss(Y[800:], one.predict(X[800:])) for one in (model, plain))
    assert lost < before - 0.05


def test_it_cannot_be_saved(tmp_path):
    model = SmoothedUnion(fake_chains(), random_state=0)
    model.fit(np.random.default_rng(0).normal(size=(20, 4)))
    with pytest.raises(InputError, match="cannot be saved, since it is made of them"):
        model.save(tmp_path / "union")

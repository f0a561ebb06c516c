"""ANT+: synthetic rows, and the label prevalence of the teachers."""

import numpy as np
import pytest
from scattered_data import small_student
from scipy.optimize import brentq
from scipy.special import expit, logit

import labelweave as lw
from labelweave.exceptions import LabelweaveWarning
from labelweave.scattered.ant import ANT
from labelweave.scattered.ant_plus import ANTPlus
from labelweave.scattered.teacher import Teacher


def make(teachers, **changes):
    return ANTPlus(teachers, **{"student": small_student(), "random_state": 0, **changes})


@pytest.fixture(scope="module")
def fitted(easy):
    X, _, teachers = easy
    return make(teachers).fit(X)


def test_without_both_it_is_ant(easy):
    X, _, teachers = easy
    plain = make(teachers, augment=0, prevalence_weight=0, keep_original="several").fit(X)
    ant = ANT(teachers, student=small_student(), random_state=0).fit(X)
    assert np.array_equal(plain.predict_proba(X), ant.predict_proba(X))


def test_a_saved_model_keeps_its_shift(fitted, easy, tmp_path):
    X, _, _ = easy
    fitted.save(tmp_path / "student")
    assert np.array_equal(lw.load(tmp_path / "student").predict_proba(X), fitted.predict_proba(X))


def test_the_student_is_shifted_to_the_prevalence_of_its_teachers(easy):
    X, _, teachers = easy
    model = make(teachers, student=small_student(epochs=3), min_precision=0.9).fit(X)
    prevalence = [dict(zip(t.labels, t.prevalence, strict=True)) for t in teachers]
    shares = {
        label: np.mean([known[label] for known in prevalence if label in known])
        for label in model.label_names_
    }

    def shifted(z, share):
        return z + brentq(lambda t: expit(z + t).mean() - share, -20, 20)

    student = logit(model.student_.predict_proba(X).astype(np.float64))
    columns = zip(student.T, shares.values(), strict=True)
    logits = np.stack([shifted(z, share) for z, share in columns], axis=1)
    probabilities = np.full((2, *logits.shape), np.nan)
    for t, teacher in enumerate(teachers):
        for label, z in zip(teacher.labels, teacher.logits(X).T.astype(np.float64), strict=True):
            probabilities[t, :, "abcde".index(label)] = expit(shifted(z, shares[label]))
    ranked = np.nanmean(probabilities, axis=0).ravel()[np.argsort(-logits, axis=None)]
    n_expected = round(expit(logits).sum())
    n = max(k for k in range(1, n_expected + 1) if ranked[:k].mean() >= 0.9)
    assert n < n_expected  # the precision of n_expected would be too low
    p = model.predict_proba(X)
    assert (p > 0.5).sum() == n
    common = logit(p.astype(np.float64)) - logits
    assert np.allclose(common, common[0, 0], atol=1e-3)


def test_without_prevalence_the_student_is_not_shifted(easy, fitted):
    X, _, teachers = easy
    silent = [Teacher(t.model, prevalence=[np.nan] * len(t.labels), name=t.name) for t in teachers]
    for model in (
        make(silent, augment=0).fit(X),
        make(teachers, augment=0, prevalence_weight=0).fit(X),
    ):
        assert not model.shift_.any()
        assert np.array_equal(model.predict_proba(X), model.student_.predict_proba(X))
    assert fitted.shift_.any()


def test_synthetic_rows_are_learnt_from(easy, fitted):
    X, _, teachers = easy
    less = make(teachers, augment=0).fit(X)
    assert not np.array_equal(less.predict_proba(X), fitted.predict_proba(X))


def test_a_student_of_teachers_with_low_thresholds_predicts_as_many_labels_as_occur(easy):
    X, _, teachers = easy

    def weak(teacher):
        """A teacher that is sure of nothing, with a threshold that fits its probabilities."""

        def model(rows):
            return 0.15 * teacher.probabilities(rows) + 0.01

        prevalence = model(X).mean(axis=0)
        return Teacher(model, teacher.labels, threshold=0.085, prevalence=prevalence)

    model = make([weak(teacher) for teacher in teachers]).fit(X)
    expected = np.nanmean(model.label_prevalence_)
    assert 0.5 * expected < model.predict(X).mean() < 2 * expected


def test_a_student_that_predicts_nothing_is_reported(easy):
    X, _, teachers = easy
    with pytest.warns(LabelweaveWarning, match="no label at all is predicted for"):
        make(teachers, threshold=1.0).fit(X)
    with pytest.warns(LabelweaveWarning, match="every label is predicted for"):
        make(teachers, threshold=0.0).fit(X)

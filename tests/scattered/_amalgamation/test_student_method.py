"""Methods that train a student on integrated predictions."""

import numpy as np
import pytest
from scattered_data import fake_chains, small_student
from scipy.special import expit

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.metrics import hamming_loss
from labelweave.scattered._amalgamation import student_method
from labelweave.scattered.ant import ANT
from labelweave.scattered.bl import BL
from labelweave.scattered.tc import TC


@pytest.mark.parametrize("cls", [BL, TC, lw.CFL, lw.AKA, lw.FKA])
def test_they_learn_and_are_saved(cls, easy, tmp_path):
    X, Y, teachers = easy
    model = cls(teachers, student=small_student(), random_state=0).fit(X)
    assert hamming_loss(Y, model.predict(X)) < 0.8 * hamming_loss(Y, np.zeros_like(Y))
    again = cls(teachers[::-1], student=small_student(), random_state=0).fit(X)
    assert np.array_equal(again.predict_proba(X), model.predict_proba(X))
    model.save(tmp_path / "student")
    assert np.array_equal(lw.load(tmp_path / "student").predict_proba(X), model.predict_proba(X))


def learnt(monkeypatch, method, X):
    """The rows and the targets that a method trains its student on, all held-out rows included."""
    calls = []
    fit_student = student_method.fit_student

    def recorded(student, X, targets, n_train):
        calls.append((X, targets.to_numpy(), n_train))
        return fit_student(student, X, targets, n_train)

    monkeypatch.setattr(student_method, "fit_student", recorded)
    method.fit(X)
    (call,) = calls
    return call


@pytest.mark.parametrize("cls", [BL, TC, ANT])
def test_what_the_student_learns_against_the_paper(cls, monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 4))
    teachers = fake_chains()
    options = {"max_rounds": 0} if cls is ANT else {}
    method = cls(teachers, student=small_student(epochs=1), random_state=0, **options)
    rows, targets, n_train = learnt(monkeypatch, method, X)
    assert n_train == 48
    assert sorted(rows.tolist()) == sorted(X.tolist())
    for x, learnt_row in zip(rows, targets, strict=True):
        for label, target in zip(method.label_names_, learnt_row, strict=True):
            p = [
                float(teacher.model.predict_proba(x[None])[0, teacher.labels.index(label)])
                for teacher in teachers
                if label in teacher.labels
            ]
            votes = sum(value > 0.5 for value in p)
            if cls is BL:  # majority vote, "assuming positive for even votes"
                expected = float(votes >= len(p) - votes)
            elif cls is TC:  # the sum of logits with equal weights
                expected = expit(sum(np.log(value / (1 - value)) for value in p) / len(p))
            else:  # Eq. 5
                expected = max(p) if votes else min(p)
            assert target == pytest.approx(expected, abs=1e-3)


def test_without_held_out_rows_the_student_learns_all(monkeypatch):
    X = np.random.default_rng(0).normal(size=(60, 4))
    method = ANT(
        fake_chains(),
        student=small_student(epochs=1, patience=None),
        validation_fraction=0,
        random_state=0,
    )
    rows, targets, n_train = learnt(monkeypatch, method, X)
    assert n_train == len(targets) == 60
    assert np.array_equal(rows, X)
    assert method.fidelity_["rows"].tolist() == [60] * 3
    with pytest.raises(InputError, match="no rows are held out to tune a threshold"):
        method.set_params(threshold="tuned").fit(X)

"""Fitting a student, a second time where it has learnt nothing."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from labelweave.exceptions import LabelweaveWarning
from labelweave.labels import LabelMatrix
from labelweave.scattered._amalgamation.student import fit_student


class Student(BaseEstimator):
    """Predicts its first features, or a constant if its learning rate is too high."""

    def __init__(self, lr=0.01):
        self.lr = lr

    def fit(self, X, y, *, validation=None):
        self.n_validation_ = 0 if validation is None else len(validation[0])
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.3) if self.lr > 0.005 else X[:, :2]


class Constant(BaseEstimator):
    """Predicts a constant and has no learning rate."""

    def fit(self, X, y, *, validation=None):
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.3)


@pytest.fixture
def data():
    X = np.random.default_rng(0).random((20, 3))
    return X, LabelMatrix(X[:, :2].astype(np.float32), ("a", "b"))


def test_a_constant_student_is_trained_again(data):
    X, targets = data
    with pytest.warns(LabelweaveWarning, match=r"trained again with lr=0\.003"):
        student = fit_student(Student(), X, targets, 15)
    assert student.lr == pytest.approx(0.003)
    assert student.n_validation_ == 5


def test_other_students_are_trained_once(data):
    X, targets = data
    student = Student(lr=0.002)
    assert fit_student(student, X, targets, 20) is student
    constant = Constant()
    assert fit_student(constant, X, targets, 15) is constant
    same = LabelMatrix(np.full((20, 2), 0.3, np.float32), ("a", "b"))
    student = Student()
    assert fit_student(student, X, same, 15) is student

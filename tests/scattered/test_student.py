"""Fitting a student: one that has learnt nothing gets a second chance."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator

from labelweave.exceptions import LabelweaveWarning
from labelweave.labels import LabelMatrix
from labelweave.scattered.student import fit_student


class Student(BaseEstimator):
    """Says what its first features say, unless its steps are too long."""

    def __init__(self, lr=0.01):
        self.lr = lr

    def fit(self, X, y, *, validation=None):
        self.n_validation_ = 0 if validation is None else len(validation[0])
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.3) if self.lr > 0.005 else X[:, :2]


class Constant(BaseEstimator):
    """Has no rate to lower."""

    def fit(self, X, y, *, validation=None):
        return self

    def predict_proba(self, X):
        return np.full((len(X), 2), 0.3)


@pytest.fixture
def lesson():
    X = np.random.default_rng(0).random((20, 3))
    return X, LabelMatrix(X[:, :2].astype(np.float32), ("a", "b"))


def test_a_student_that_says_the_same_of_every_row_is_trained_again(lesson):
    X, targets = lesson
    with pytest.warns(LabelweaveWarning, match=r"trained again with lr=0\.003"):
        found = fit_student(Student(), X, targets, 15)
    assert found.lr == pytest.approx(0.003)
    assert found.n_validation_ == 5


def test_others_are_left_as_they_are(lesson):
    X, targets = lesson
    student = Student(lr=0.002)
    assert fit_student(student, X, targets, 20) is student
    constant = Constant()
    assert fit_student(constant, X, targets, 15) is constant
    alike = LabelMatrix(np.full((20, 2), 0.3, np.float32), ("a", "b"))  # nothing to tell apart
    student = Student()
    assert fit_student(student, X, alike, 15) is student

"""Base of the methods that train one student on the predictions of several teachers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.input_checks import is_texts
from labelweave.labels import LabelMatrix
from labelweave.scattered._amalgamation.agreement import Disagreement
from labelweave.scattered._amalgamation.student import default_chain, fit_student, make_student
from labelweave.scattered._amalgamation.teacher_method import TeacherMethod
from labelweave.scattered._amalgamation.training_set import (
    TrainingSet,
    auto_augmentation,
    check_synthetic,
)
from labelweave.scattered.teacher import Teacher
from labelweave.tables.table import Table

__all__ = ["StudentMethod"]


class StudentMethod(TeacherMethod):
    """Base of the methods that train a student; these parameters are common to them.

    Parameters
    ----------
    teachers : sequence of Teacher
        As in :class:`labelweave.scattered._amalgamation.teacher_method.TeacherMethod`.
    student : estimator or id of a method, optional
        The estimator that learns from the teachers, such as ``"mlp"``. By default an order-free
        chain (:class:`labelweave.dependent.ofcc.OFCC` with ``lr=0.01, batch_size=32, reveal=0``).
        A student of features gets TF-IDF weights of texts, and the pixels of images. Students with
        the capability `soft_targets` learn probabilities; any other estimator learns pseudo-labels,
        1 where the probability is above one half.
    augment : float or "auto", default=0.0
        Number of synthetic rows per row, mixed from two rows each, that the teachers label for
        the student. ``"auto"``: five per row, at most 5000 altogether, and none where the rows
        are not numbers.
    aliases, match, calibration, verbose, on_disagreement, threshold, validation_fraction,
    random_state
        As in :class:`labelweave.scattered._amalgamation.teacher_method.TeacherMethod`.

    Attributes
    ----------
    student_ : the fitted student, which predicts without the teachers
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TeacherMethod._parameter_constraints,
        "student": [HasMethods(["fit", "predict_proba"]), str, None],
        "augment": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        student: Any = None,
        augment: float | str = 0.0,
        aliases: Mapping[str, str] | None = None,
        match: str = "ignore-case",
        calibration: str | None = None,
        verbose: int = 0,
        on_disagreement: Callable[[Disagreement], None] | None = None,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.teachers = teachers
        self.student = student
        self.augment = augment
        self.aliases = aliases
        self.match = match
        self.calibration = calibration
        self.verbose = verbose
        self.on_disagreement = on_disagreement
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def default_part(self, parameter: str) -> Any:
        """Return the estimator that None or the id in `student` stands for."""
        if parameter != "student":
            return None
        return make_student(self._default_chain() if self.student is None else self.student)

    # -- what a method may write -------------------------------------------------------

    def _default_chain(self) -> Any:
        """The unfitted student where `student` is None."""
        return default_chain()

    def _train_student(self, student: Any, training_set: TrainingSet, targets: np.ndarray) -> Any:
        """Return the fitted student."""
        rows = self._student_rows(training_set.X)
        labels = self._student_labels(student, targets)
        return fit_student(student, rows, labels, training_set.n_train)

    # -- fitting -----------------------------------------------------------------------

    def _synthetic_per_row(self, X: Any) -> float:
        if not isinstance(self.augment, str):
            return self.augment
        return self._auto_augmentation(X) if self._teachers_predict_new_rows else 0.0

    def _auto_augmentation(self, X: Any) -> float:
        """The number of synthetic rows per row with ``augment="auto"``."""
        return auto_augmentation(X)

    def _check_rows(self, X: Any) -> None:
        self.default_part("student")._validate_params()
        self._student_for(X)  # raises for one that takes other rows
        if self._synthetic_per_row(X) > 0:
            check_synthetic(X)
            if not self._teachers_predict_new_rows:
                raise InputError(
                    "a teacher consists of stored predictions, which have no synthetic rows: set "
                    "augment=0",
                    parameter="augment",
                )

    def _learn(
        self, training_set: TrainingSet, targets: np.ndarray, generator: np.random.RandomState
    ) -> None:
        student = self._student_for(training_set.X)
        if student.get_params(deep=False).get("random_state", 0) is None:
            student.set_params(random_state=int(generator.randint(np.iinfo(np.int32).max)))
        if self.verbose and capabilities(student).progress_bar:
            student.set_params(verbose=self.verbose)
        self.student_ = self._train_student(student, training_set, targets)

    def _student_for(self, X: Any) -> Any:
        """The unfitted student; one of features gets TF-IDF weights of texts."""
        student = self.default_part("student")
        can = capabilities(student)
        if is_texts(X) and not can.texts:
            from labelweave.text import TextClassifier

            return TextClassifier(student)
        if not is_texts(X) and can.texts and not can.vectors:
            raise InputError(
                f"the student {type(student).__name__} takes texts, but X holds {self.fitted_to_}",
                parameter="student",
            )
        return student

    def _student_rows(self, X: Any) -> Any:
        """Rows as the student takes them: it needs a DataFrame only for a mixed table."""
        if "table_encoder_" in vars(self):
            return self.table_encoder_.passed_on(Table(X).as_reported())
        return X.to_numpy(dtype=np.float64) if hasattr(X, "iloc") else X

    def _student_labels(self, student: Any, targets: np.ndarray) -> LabelMatrix:
        """The targets as soft targets if the student supports these, else as pseudo-labels."""
        if not capabilities(student).soft_targets:
            targets = np.where(np.isnan(targets), np.nan, targets > 0.5).astype(np.float32)
        return LabelMatrix(targets, tuple(self.label_names_), self.label_descriptions_)

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.student_.predict_proba(self._student_rows(X))

    # -- persistence -------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "student_model": self.student_}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        super()._set_state(state)
        self.student_ = state["student_model"]

"""Base of the methods that make one student of several teachers, without labelled rows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.calibration import METHODS as CALIBRATIONS
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.input_checks import is_texts
from labelweave.labels import LabelMatrix
from labelweave.rows import count_rows
from labelweave.scattered.disagreement import Disagreement, disagreement_of
from labelweave.scattered.fidelity import fidelity_to
from labelweave.scattered.label_rates import teachers_rates
from labelweave.scattered.lesson import Lesson, known_labels, make_lesson
from labelweave.scattered.opinions import ask_teachers, join_teachers
from labelweave.scattered.student import fit_student, made_student, takes_probabilities
from labelweave.scattered.synthetic import usual_share
from labelweave.scattered.teacher import Teacher, as_teachers, take_rows
from labelweave.scattered.vocabulary import MATCHES, Vocabulary
from labelweave.signatures import name_all_parameters
from labelweave.thresholds import Threshold, make_threshold

__all__ = ["Amalgamator"]


class Amalgamator(MultiLabelClassifier):
    """Base of the methods; these parameters are common to all of them.

    Parameters
    ----------
    teachers : sequence of Teacher
        Two or more; models of this library and folders of such may stand for themselves. See
        :class:`labelweave.scattered.teacher.Teacher`. A saved model does not hold them.
    student : estimator or id of a method, optional
        What learns from the teachers, such as ``"mlp"``: by default an order-free chain
        (:class:`labelweave.dependent.ofcc.OFCC` with ``lr=0.01, batch_size=32``, which nothing
        is revealed to in training), before which texts become TF-IDF weights. Chains and MLPs
        with cross-entropy learn probabilities, any other estimator learns the labels that these
        make likely.
    aliases : mapping of str to str, optional
        Labels that other teachers call otherwise: label to its common name.
    match : {"ignore-case", "exact"}, default="ignore-case"
        Whether labels that differ in case only are one.
    calibration : {"temperature", "sigmoid", "isotonic"} or None, default=None
        How the probabilities of each teacher are calibrated on the rows whose labels are known;
        it needs such rows.
    augment : float or "auto", default=0.0
        So many made-up rows for each row given, mixed from two of them, are shown to the
        teachers and learnt from as well. ``"auto"``: five, at most 5000 altogether, and none
        where rows are no numbers.
    batch_rows : int, default=4096
        Rows that a teacher is asked about at a time.
    verbose : int, default=0
        1 shows progress bars where there is a terminal.
    threshold : float, str or Threshold, default=0.5
        One that must be tuned is tuned on labelled `validation` rows or, without any, against
        what the teachers together find on the rows held out.
    validation_fraction : float, default=0.2
        Share of the rows held out, for early stopping and to measure fidelity.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    student_ : the fitted student, which predicts alone
    disagreement_ : DataFrame
        How often the teachers contradict each other, by pair and label; see
        :class:`labelweave.scattered.disagreement.Disagreement`.
    fidelity_ : DataFrame
        How well the student follows each teacher on rows held out, one line a teacher.
    teacher_labels_ : dict of str to list of str
        The labels of each teacher, under their common names.
    label_prevalence_ : ndarray
        How often each label is positive where the teachers learnt; NaN where none tells.
    notes_ : dict
        What the method has to tell about this run.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "teachers": ["array-like"],
        "student": [HasMethods(["fit", "predict_proba"]), str, None],
        "aliases": [dict, None],
        "match": [StrOptions(set(MATCHES))],
        "calibration": [StrOptions(set(CALIBRATIONS)), None],
        "augment": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "batch_rows": [Interval(Integral, 1, None, closed="left")],
        "verbose": ["verbose"],
    }
    # Called with the report on disagreement, before the student is trained.
    _listener: Callable[[Disagreement], None] | None = None
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("teachers", "verbose")

    def __init__(
        self,
        teachers: Sequence[Teacher] = (),
        *,
        student: Any = None,
        aliases: Mapping[str, str] | None = None,
        match: str = "ignore-case",
        calibration: str | None = None,
        augment: float | str = 0.0,
        batch_rows: int = 4096,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.teachers = teachers
        self.student = student
        self.aliases = aliases
        self.match = match
        self.calibration = calibration
        self.augment = augment
        self.batch_rows = batch_rows
        self.verbose = verbose
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        name_all_parameters(cls)

    def _default_student(self) -> Any:
        """The estimator that None or the id in `student` stands for."""
        return made_student(self.student, is_text=False)

    # -- what a method writes ----------------------------------------------------------

    @abstractmethod
    def _targets(self, lesson: Lesson) -> np.ndarray:
        """What the student shall learn: P(label | x) of each row, NaN where nobody knows."""

    def _check_teachers(self, teachers: Sequence[Teacher]) -> None:
        """Raise for teachers that the method cannot learn from."""

    def _train(self, student: Any, lesson: Lesson, targets: np.ndarray) -> Any:
        """The fitted student."""
        return fit_student(
            student, self._own_rows(lesson.X), self._as_labels(student, targets), lesson.n_train
        )

    # -- fitting -----------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, *, validation: Any = None) -> Self:
        """Learn from the teachers on rows without labels.

        Parameters
        ----------
        X : array-like, SciPy sparse, DataFrame or texts
            Rows as the teachers take them.
        y : labels of some of the rows, optional
            Where a few labels are known: a matrix of 1, 0 and NaN with one column for each of
            the teachers' labels in their common order, or a DataFrame or LabelMatrix with
            label names. They are learnt as they are, and calibrate and weigh the teachers.
        validation : rows, Dataset or (X, Y), optional
            Rows to hold out in place of a share of X; labels serve the threshold alone.

        Returns
        -------
        self
        """
        self._validate_params()
        teachers = as_teachers(self.teachers)
        vocabulary = join_teachers(teachers, aliases=self.aliases, match=self.match)
        self._check_teachers(teachers)
        rule = make_threshold(self.threshold)
        checked = self._checked_features(X, reset=True)
        X = X if hasattr(X, "iloc") else checked
        self._set_labels(teachers, vocabulary)
        truth = known_labels(y, count_rows(X), vocabulary)
        if truth is None and self.calibration is not None:
            raise InputError("calibration needs rows whose labels are known: pass y")
        held, held_labels = self._held_rows(validation)
        generator = self._generator()
        lesson = make_lesson(
            teachers,
            vocabulary,
            X,
            truth,
            held,
            generator,
            validation_fraction=self.validation_fraction,
            calibration=self.calibration,
            augment=usual_share(X) if isinstance(self.augment, str) else self.augment,
            batch_rows=self.batch_rows,
            verbose=self.verbose,
        )
        self._report(lesson)
        targets = self._with_truth(self._targets(lesson), lesson.truth)
        student = self._seeded_student(X, generator)
        self.student_ = self._train(student, lesson, targets)
        self._look_back(lesson)
        if rule.needs_validation:
            rule.fit(*self._rows_for_threshold(rule, lesson, targets, held, held_labels))
        self.threshold_ = rule
        return self

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        raise NotImplementedError("an amalgamator is fitted by `fit`")

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.student_.predict_proba(X)

    def fidelity(self, X: Any) -> Any:
        """How well the student follows each teacher on other rows; see `fidelity_`."""
        teachers = as_teachers(self.teachers)
        vocabulary = join_teachers(teachers, aliases=self.aliases, match=self.match)
        opinions = ask_teachers(teachers, vocabulary, X, batch_rows=self.batch_rows)
        return fidelity_to(opinions, self.predict_proba(X))

    # -- the steps of `fit` ------------------------------------------------------------

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        return list(X) if is_texts(X) else super()._checked_features(X, reset=reset)

    def _own_rows(self, X: Any) -> Any:
        """Rows of a lesson as the student takes them: teachers may want a DataFrame."""
        return X.to_numpy(dtype=np.float64) if hasattr(X, "iloc") else X

    def _set_labels(self, teachers: Sequence[Teacher], vocabulary: Vocabulary) -> None:
        self._single_label = False
        self._target_dtype = np.dtype(np.int64)
        self.label_names_ = np.asarray(vocabulary.names, dtype=object)
        self.n_labels_ = len(vocabulary.names)
        self.classes_ = np.tile([0, 1], (self.n_labels_, 1))
        self.label_descriptions_ = {}
        for teacher, columns in zip(teachers, vocabulary.columns, strict=True):
            told = getattr(teacher.model, "label_descriptions_", {})
            for label, place in zip(teacher.labels, columns, strict=True):
                if label in told:
                    self.label_descriptions_.setdefault(vocabulary.names[place], told[label])

    def _held_rows(self, validation: Any) -> tuple[Any, LabelMatrix | None]:
        """Rows to hold out that were given, and their labels where they have some."""
        if validation is None:
            return None, None
        Y = None
        if hasattr(validation, "X") and hasattr(validation, "Y"):
            validation, Y = validation.X, validation.Y
        elif isinstance(validation, tuple) and len(validation) == 2:
            validation, Y = validation
        checked = self._checked_features(validation, reset=False)
        rows = validation if hasattr(validation, "iloc") else checked
        return rows, None if Y is None else self._known_labels(Y)

    def _with_truth(self, targets: np.ndarray, truth: np.ndarray | None) -> np.ndarray:
        if truth is not None:
            targets = np.where(np.isnan(truth), targets, truth)
        silent = np.isnan(targets).all(axis=0)
        if silent.any():
            label = self.label_names_[int(np.argmax(silent))]
            raise InputError(
                f"no teacher is sure of the label {label!r} on any row: lower `abstain`"
            )
        return targets.astype(np.float32)

    def _seeded_student(self, X: Any, generator: np.random.RandomState) -> Any:
        student = made_student(self.student, is_text=is_texts(X))
        settings = student.get_params(deep=False)
        if settings.get("random_state", 0) is None:
            student.set_params(random_state=int(generator.randint(np.iinfo(np.int32).max)))
        if self.verbose and capabilities(student).progress_bar:
            student.set_params(verbose=self.verbose)
        return student

    def _as_labels(self, student: Any, targets: np.ndarray) -> LabelMatrix:
        """Targets in the form of labels: probabilities where the student can learn these."""
        if not takes_probabilities(student):
            targets = np.where(np.isnan(targets), np.nan, targets > 0.5).astype(np.float32)
        return LabelMatrix(targets, tuple(self.label_names_), self.label_descriptions_)

    def _report(self, lesson: Lesson) -> None:
        """What can be told before any training: who knows what, and who contradicts whom."""
        opinions = lesson.opinions
        self.label_prevalence_ = teachers_rates(opinions)
        self.teacher_labels_ = {
            name: [str(self.label_names_[j]) for j in np.sort(columns)]
            for name, columns in zip(opinions.names, opinions.vocabulary.columns, strict=True)
        }
        given = np.flatnonzero(lesson.numbers >= 0)
        given = given[np.argsort(lesson.numbers[given])]
        report = disagreement_of(opinions._replace(logits=opinions.logits[:, given]))
        self.disagreement_ = report.table
        if self._listener is not None:
            self._listener(report)

    def _look_back(self, lesson: Lesson) -> None:
        """How well the student follows, from opinions that are there already."""
        opinions, first = lesson.opinions, lesson.n_train
        if first == lesson.opinions.logits.shape[1]:  # too few rows to hold any out
            first = 0
        rows = np.arange(first, opinions.logits.shape[1])
        held = opinions._replace(logits=opinions.logits[:, rows])
        scores = self._predict_proba(self._own_rows(take_rows(lesson.X, rows)))
        self.fidelity_ = fidelity_to(held, scores)
        if not hasattr(self, "notes_"):
            self.notes_: dict[str, Any] = {}

    def _rows_for_threshold(
        self,
        rule: Threshold,
        lesson: Lesson,
        targets: np.ndarray,
        held: Any,
        labels: LabelMatrix | None,
    ) -> tuple[LabelMatrix, np.ndarray]:
        if labels is not None:
            return labels, self.predict_proba(held)
        rows = np.arange(lesson.n_train, len(targets))
        if not len(rows):
            raise InputError(
                f"{lesson.n_train} rows are too few to tune a threshold on: pass validation= or a "
                "fixed threshold"
            )
        if rule.needs_labels:
            warnings.warn(
                "the threshold is tuned against what the teachers find, for lack of labelled "
                "validation rows",
                LabelweaveWarning,
                stacklevel=3,
            )
        likely = np.where(np.isnan(targets[rows]), np.nan, targets[rows] > 0.5)
        names = tuple(self.label_names_)
        scores = self._probabilities(self._own_rows(take_rows(lesson.X, rows)))
        return LabelMatrix(likely.astype(np.float32), names), scores

    # -- persistence -------------------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {
            "student_model": self.student_,
            "disagreement_table": self.disagreement_.to_dict("list"),
            "fidelity_table": self.fidelity_.to_dict("list"),
            "teacher_labels": self.teacher_labels_,
            "notes": self.notes_,
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        import pandas as pd

        self.student_ = state["student_model"]
        self.disagreement_ = pd.DataFrame(state["disagreement_table"])
        self.fidelity_ = pd.DataFrame(state["fidelity_table"])
        self.teacher_labels_ = dict(state["teacher_labels"])
        self.notes_ = dict(state["notes"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.capabilities.progress_bar = True
        return tags

"""Base of the methods that combine several teachers, without labelled rows."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any, ClassVar, Self, final

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions

from labelweave.calibration import METHODS as CALIBRATIONS
from labelweave.data.images.collection import checked_images
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.input_checks import is_texts
from labelweave.labels import LabelMatrix
from labelweave.predictor import MultiLabelPredictor
from labelweave.rows import count_rows
from labelweave.scattered._amalgamation.agreement import (
    Disagreement,
    disagreement_of,
    fidelity_to_teachers,
)
from labelweave.scattered._amalgamation.prevalence import mean_prevalence
from labelweave.scattered._amalgamation.teacher_predictions import (
    TeacherPredictions,
    joint_vocabulary,
    predict_with_teachers,
)
from labelweave.scattered._amalgamation.training_set import (
    TrainingSet,
    make_training_set,
    match_known_labels,
    n_held_out,
)
from labelweave.scattered._amalgamation.vocabulary import MATCHES, Vocabulary
from labelweave.scattered.teacher import Teacher, as_teachers, take_rows
from labelweave.tables.table import Table, numbers_or_table
from labelweave.thresholds import Threshold, make_threshold

__all__ = ["TeacherMethod"]


class TeacherMethod(MultiLabelPredictor):
    """Base of the methods that combine several teachers; these parameters are common to them.

    Parameters
    ----------
    teachers : sequence of Teacher
        Two or more; models of this library and folders of such models may stand for themselves.
        See :class:`labelweave.scattered.teacher.Teacher`. A saved student does not contain them.
    aliases : mapping of str to str, optional
        From a label to its common name, for labels that other teachers call differently.
    match : {"ignore-case", "exact"}, default="ignore-case"
        Whether labels that differ only in case are the same label.
    calibration : {"temperature", "sigmoid", "isotonic"} or None, default=None
        How the probabilities of each teacher are calibrated on the rows whose labels are known;
        it needs such rows.
    verbose : int, default=0
        1 shows progress bars where there is a terminal.
    on_disagreement : function, optional
        Called with the :class:`labelweave.scattered._amalgamation.agreement.Disagreement` of the
        teachers, before anything is trained.
    threshold : float, str or Threshold, default=0.5
        A threshold that has to be tuned is tuned on labelled `validation` rows or, without
        any, against the combined predictions of the teachers on held-out rows.
    validation_fraction : float, default=0.2
        Share of the rows held out; 0 holds none out, but a student that stops early then holds
        out rows of its own.
    random_state : int, RandomState instance or None, default=None

    Attributes
    ----------
    disagreement_ : DataFrame
        How often the teachers contradict each other, by pair and label; see
        :class:`labelweave.scattered._amalgamation.agreement.Disagreement`.
    fidelity_ : DataFrame
        How closely the predictions follow each teacher on held-out rows (on all rows where none
        are held out), one row per teacher.
    teacher_labels_ : dict of str to list of str
        The labels of each teacher, under their common names.
    label_prevalence_ : ndarray
        Mean prevalence of each label in the training rows of the teachers; NaN where unknown.
    fitted_to_ : {"features", "texts", "images"}
        The kind of the rows; a mixed table counts as features.
    notes_ : dict
        Figures of this run that the method reports.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelPredictor._parameter_constraints,
        "teachers": ["array-like"],
        "aliases": [dict, None],
        "match": [StrOptions(set(MATCHES))],
        "calibration": [StrOptions(set(CALIBRATIONS)), None],
        "verbose": ["verbose"],
        "on_disagreement": [callable, None],
        "validation_fraction": [Interval(Real, 0, 1, closed="left")],
    }
    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("teachers", "verbose", "on_disagreement")

    teachers: Sequence[Teacher]
    aliases: Mapping[str, str] | None
    match: str
    calibration: str | None
    verbose: int
    on_disagreement: Callable[[Disagreement], None] | None

    # -- what a method writes ----------------------------------------------------------

    @abstractmethod
    def _targets(self, training_set: TrainingSet) -> np.ndarray:
        """The combined predictions: P(label | x) of each row, NaN where no teacher predicts.

        They are relative to the thresholds of the teachers: one half is the threshold.
        """

    def _check_teachers(self, teachers: Sequence[Teacher]) -> None:
        """Raise for teachers that the method cannot learn from."""

    def _check_rows(self, X: Any) -> None:
        """Raise for rows that the method cannot learn from, before any teacher predicts them."""

    def _synthetic_per_row(self, X: Any) -> float:
        """The number of synthetic rows to add per row; none by default."""
        return 0.0

    def _learn(
        self, training_set: TrainingSet, targets: np.ndarray, generator: np.random.RandomState
    ) -> None:
        """Train on the targets; nothing by default."""

    def _relative_to_thresholds(self, probabilities: np.ndarray) -> np.ndarray:
        """Predictions on the scale of the targets, where one half is the teachers' threshold."""
        return probabilities

    def _rule_for_probabilities(self, rule: Threshold) -> Threshold:
        """A rule that is not tuned, on the scale of the predictions."""
        return rule

    # -- fitting -----------------------------------------------------------------------

    @final
    def fit(self, X: Any, y: Any = None, *, validation: Any = None) -> Self:
        """Fit to the predictions of the teachers on rows without labels.

        Parameters
        ----------
        X : array-like, SciPy sparse, DataFrame or texts
            Rows as the teachers accept them.
        y : labels of some of the rows, optional
            Where a few labels are known: a matrix of 1, 0 and NaN with one column per label in
            the common order of the labels, or a DataFrame or LabelMatrix with label names. They
            replace the teachers' predictions, and serve to calibrate and weight the teachers.
        validation : rows, Dataset or (X, Y), optional
            Rows to hold out in place of a share of X; their labels are only used to tune the
            threshold.

        Returns
        -------
        self
        """
        self._validate_params()
        teachers = as_teachers(self.teachers)
        vocabulary = joint_vocabulary(teachers, aliases=self.aliases, match=self.match)
        self._check_teachers(teachers)
        self._teachers_predict_new_rows = all(one.predicts_new_rows for one in teachers)
        rule = make_threshold(self.threshold)
        X = self._checked_features(X, reset=True)
        self._set_labels(teachers, vocabulary)
        known_labels = match_known_labels(y, count_rows(X), vocabulary)
        if known_labels is None and self.calibration is not None:
            raise InputError("calibration needs rows whose labels are known: pass y")
        held_out, held_out_labels = self._checked_held_out(validation)
        if rule.needs_validation and not self._holds_rows_out(X, held_out):
            raise InputError(
                "no rows are held out to tune a threshold on: pass validation= or a fixed threshold"
            )
        self._check_rows(X)
        generator = self._generator()
        training_set = make_training_set(
            teachers,
            vocabulary,
            X,
            known_labels,
            held_out,
            generator,
            validation_fraction=self.validation_fraction,
            calibration=self.calibration,
            augment=self._synthetic_per_row(X),
            verbose=self.verbose,
        )
        self.notes_: dict[str, Any] = {}
        self._describe_teachers(training_set)
        targets = self._with_known_labels(self._targets(training_set), training_set.known_labels)
        self._learn(training_set, targets, generator)
        self.fidelity_ = self._held_out_fidelity(training_set)
        if rule.needs_validation:
            if held_out_labels is not None:
                rule.fit(held_out_labels, self.predict_proba(held_out))
            else:
                rule.fit(*self._pseudo_labelled_predictions(rule, training_set, targets))
        else:
            rule = self._rule_for_probabilities(rule)
        self.threshold_ = rule
        self._warn_of_useless_predictions(training_set)
        return self

    def fidelity(self, X: Any) -> Any:
        """How closely the predictions follow each teacher on other rows; see `fidelity_`."""
        teachers = as_teachers(self.teachers)
        vocabulary = joint_vocabulary(teachers, aliases=self.aliases, match=self.match)
        predictions = predict_with_teachers(teachers, vocabulary, X)
        relative = self._relative_to_thresholds(self.predict_proba(X))
        return fidelity_to_teachers(predictions, relative)

    # -- the steps of `fit` ------------------------------------------------------------

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        kind = "texts" if is_texts(X) else "images" if hasattr(X, "pixels") else "features"
        if reset:
            self.fitted_to_ = kind
            for name in ("n_features_in_", "feature_names_in_", "table_encoder_"):
                self.__dict__.pop(name, None)
        elif kind != self.fitted_to_ and count_rows(X):
            raise InputError(f"the model was fitted to {self.fitted_to_}, but X holds {kind}")
        if kind == "texts":
            return list(X)
        if kind == "images":
            return checked_images(X)
        X = numbers_or_table(X, missing_values=False)
        # Each teacher, and the student, encodes a table in its own way.
        if not reset and "table_encoder_" in vars(self):
            return self._encoded(X).frame
        if isinstance(X, Table):
            return self._fit_encoder(self._checked_table(X, reset=reset), None).frame
        checked = super()._checked_features(X, reset=reset)
        return X if hasattr(X, "iloc") else checked  # teachers may need the column names

    def _holds_rows_out(self, X: Any, held_out: Any) -> bool:
        return held_out is not None or n_held_out(count_rows(X), self.validation_fraction) > 0

    def _set_labels(self, teachers: Sequence[Teacher], vocabulary: Vocabulary) -> None:
        self._single_label = False
        self._target_dtype = np.dtype(np.int64)
        self.label_names_ = np.asarray(vocabulary.names, dtype=object)
        self.n_labels_ = len(vocabulary.names)
        self.classes_ = np.tile([0, 1], (self.n_labels_, 1))
        self.label_descriptions_: dict[str, str] = {}
        for teacher, columns in zip(teachers, vocabulary.columns, strict=True):
            descriptions = getattr(teacher.model, "label_descriptions_", {})
            for label, place in zip(teacher.labels, columns, strict=True):
                if label in descriptions:
                    name = vocabulary.names[place]
                    self.label_descriptions_.setdefault(name, descriptions[label])

    def _checked_held_out(self, validation: Any) -> tuple[Any, LabelMatrix | None]:
        """The validation rows, and their labels where they have some."""
        if validation is None:
            return None, None
        Y = None
        if hasattr(validation, "X") and hasattr(validation, "Y"):
            validation, Y = validation.X, validation.Y
        elif isinstance(validation, tuple) and len(validation) == 2:
            validation, Y = validation
        X = self._checked_features(validation, reset=False)
        return X, None if Y is None else self._known_labels(Y)

    def _with_known_labels(
        self, targets: np.ndarray, known_labels: np.ndarray | None
    ) -> np.ndarray:
        if known_labels is not None:
            targets = np.where(np.isnan(known_labels), targets, known_labels)
        without_target = np.isnan(targets).all(axis=0)
        if without_target.any():
            label = self.label_names_[int(np.argmax(without_target))]
            raise InputError(
                f"all teachers abstain from the label {label!r} on every row: lower `abstain`"
            )
        return targets.astype(np.float32)

    def _describe_teachers(self, training_set: TrainingSet) -> None:
        """Set what is known of the teachers before any training."""
        predictions = training_set.predictions
        self.label_prevalence_ = mean_prevalence(predictions)
        self.teacher_labels_ = {
            name: [str(self.label_names_[j]) for j in np.sort(columns)]
            for name, columns in zip(predictions.names, predictions.vocabulary.columns, strict=True)
        }
        report = disagreement_of(_in_order_of_fit(training_set))
        self.disagreement_ = report.table
        if self.on_disagreement is not None:
            self.on_disagreement(report)

    def _held_out_fidelity(self, training_set: TrainingSet) -> Any:
        rows = training_set.held_out_rows()
        probabilities = self._predict_proba(take_rows(training_set.X, rows))
        relative = self._relative_to_thresholds(probabilities)
        return fidelity_to_teachers(training_set.predictions_on(rows), relative)

    def _warn_of_useless_predictions(self, training_set: TrainingSet) -> None:
        """Warn if no label is predicted, or every label, where the teachers do not do so."""
        rows = training_set.held_out_rows()
        n_predicted = int(self.predict(take_rows(training_set.X, rows)).sum())
        logits = training_set.predictions_on(rows).logits
        share = float((logits > 0).sum() / max((~np.isnan(logits)).sum(), 1))
        n_entries = len(rows) * self.n_labels_
        if n_entries and n_predicted in (0, n_entries) and 0 < share < 1:
            what = "no label at all" if n_predicted == 0 else "every label"
            warnings.warn(
                f"{what} is predicted for {len(rows):,} rows on which the teachers predict "
                f"{share:.1%} of their labels: the student has not learnt from them, or its "
                "threshold does not fit its probabilities (threshold='cardinality' sets one that "
                "does)",
                LabelweaveWarning,
                stacklevel=3,
            )

    def _pseudo_labelled_predictions(
        self, rule: Threshold, training_set: TrainingSet, targets: np.ndarray
    ) -> tuple[LabelMatrix, np.ndarray]:
        """Pseudo-labels and probabilities of the held-out rows, to tune a threshold on."""
        rows = np.arange(training_set.n_train, len(targets))
        if rule.needs_labels:
            warnings.warn(
                "the threshold is tuned against the predictions of the teachers, for lack of "
                "labelled validation rows",
                LabelweaveWarning,
                stacklevel=3,
            )
        pseudo_labels = np.where(np.isnan(targets[rows]), np.nan, targets[rows] > 0.5)
        labels = LabelMatrix(pseudo_labels.astype(np.float32), tuple(self.label_names_))
        return labels, self._probabilities(take_rows(training_set.X, rows))

    # -- persistence and tags ----------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {
            "fitted_to": self.fitted_to_,
            "disagreement_table": self.disagreement_.to_dict("list"),
            "fidelity_table": self.fidelity_.to_dict("list"),
            "teacher_labels": self.teacher_labels_,
            "notes": self.notes_,
        }

    def _set_state(self, state: Mapping[str, Any]) -> None:
        import pandas as pd

        if state["fitted_to"] not in ("features", "texts", "images"):
            raise InputError(f"{state['fitted_to']!r} is no kind of rows")
        self.fitted_to_ = state["fitted_to"]
        self.disagreement_ = pd.DataFrame(state["disagreement_table"])
        self.fidelity_ = pd.DataFrame(state["fidelity_table"])
        self.teacher_labels_ = dict(state["teacher_labels"])
        self.notes_ = dict(state["notes"])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        fitted_to = vars(self).get("fitted_to_")
        tags.capabilities.vectors = fitted_to in (None, "features")
        tags.capabilities.texts = fitted_to in (None, "texts")
        tags.capabilities.images = fitted_to == "images"
        tags.capabilities.passes_tables = True
        tags.capabilities.progress_bar = True
        return tags


def _in_order_of_fit(training_set: TrainingSet) -> TeacherPredictions:
    """The predictions on the rows of `fit`, in their order."""
    rows = np.flatnonzero(training_set.row_numbers >= 0)
    return training_set.predictions_on(rows[np.argsort(training_set.row_numbers[rows])])

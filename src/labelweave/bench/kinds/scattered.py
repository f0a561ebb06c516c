"""Scattered labels: teachers learn on some rows, and a student on other rows without labels.

Labels and rows are divided among teachers (`n_teachers`, `overlap`, `teacher_rows`), which are
order-free chains (or another method, `teacher`) that stop early on rows of their own; with
`teacher_published` (true, "program" or "text") they have the settings of the ANT paper's tables.
The protocol splits the rows that no teacher saw: a student sees the train rows without labels,
stops early on the teachers' predictions for the validation rows, and is scored on the test rows.
The labels of the validation rows choose the threshold and nothing else.

The option `role` of a method selects another line of the table:

student (default)
    The method learns from the teachers.
oracle
    The method learns from the true labels of the student's rows.
bound
    The ideal bound: the method learns from the true labels of the student's and of all teachers'
    rows.
attainable
    The attainable bound: the method learns from the pooled rows of all teachers, each with the
    labels that its teacher had; the others are unknown. It stops early on rows of these.
teachers
    Each teacher on its own labels; the mean of their scores.
nothing
    No label is predicted for any row.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from labelweave.bench.kinds import check_keys
from labelweave.exceptions import InputError

if TYPE_CHECKING:
    import numpy as np

    from labelweave.bench.running.fitting import Outcome
    from labelweave.bench.running.plan import Cell
    from labelweave.data import Dataset
    from labelweave.data.scenarios import TeacherShare
    from labelweave.pipeline.data_parts import Parts
    from labelweave.scattered.teacher import Teacher

ROLES = ("student", "oracle", "bound", "attainable", "teachers", "nothing")
_SETTINGS = (
    "n_teachers",
    "overlap",
    "teacher_rows",
    "teacher",
    "teacher_settings",
    "teacher_published",
)
_KEPT = 24  # teachers and predictions that a process keeps, for cells that share them
_memory: OrderedDict[tuple[Any, ...], Any] = OrderedDict()


class Classroom(NamedTuple):
    """Teachers, the student's rows in three parts, and the rows of the two bounds.

    `pooled` are the teachers' rows, each with the labels that its teacher had and the others
    unknown; `all_rows` are these and the student's train rows, with all labels.
    """

    teachers: list[Teacher]
    parts: Parts
    pooled: Dataset
    all_rows: Dataset

    def sizes(self) -> dict[str, int]:
        return {"teachers": len(self.pooled), **self.parts.sizes()}


class Predictions(NamedTuple):
    """Probabilities of the validation and test rows, and what is kept of the fit."""

    at_validation: np.ndarray
    at_test: np.ndarray
    labels: tuple[str, ...]
    seconds: float
    history: dict[str, list[Any]] | None
    artifacts: dict[str, Any]


def check_scenario(settings: Mapping[str, Any]) -> None:
    check_keys(settings, _SETTINGS, "setting of a scattered scenario called")


def check_options(options: Mapping[str, Any]) -> None:
    check_keys(options, ("role",), "option of a scattered method called")
    if options.get("role", "student") not in ROLES:
        raise InputError(f"role is one of {', '.join(ROLES)}")


def run(cell: Cell, data: Dataset) -> Outcome:
    from labelweave.bench.running.fitting import Outcome

    classroom = _remembered(("classroom", *_place(cell)), lambda: _teach(cell, data))
    role = cell.options.get("role", "student")
    if role == "teachers":
        return _score_teachers(cell, classroom)
    if role == "nothing":  # a tuned threshold would predict all labels
        cell = replace(cell, protocol=replace(cell.protocol, threshold=0.5))
    key = ("predictions", *_place(cell), cell.method, repr(sorted(cell.resolved.items())), role)
    predictions = _remembered(key, lambda: _predict(cell, classroom, role))
    scores, thresholds = _scores(cell, classroom.parts, predictions)
    return Outcome(
        classroom.sizes(),
        scores,
        thresholds,
        predictions.seconds,
        predictions.history,
        predictions.artifacts,
    )


def _place(cell: Cell) -> tuple[Any, ...]:
    """Everything that decides teachers and rows; the threshold does not."""
    protocol = cell.protocol
    return (
        cell.data.name,
        cell.data_checksum,
        repr(sorted(cell.scenario.settings.items())),
        cell.seed,
        (protocol.split, protocol.test_size, protocol.validation),
        cell.quick,
    )


def _remembered(key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
    """Return what this process made for this key a short while ago, or make it now."""
    if key not in _memory:
        _memory[key] = make()
        if len(_memory) > _KEPT:
            _memory.popitem(last=False)
    _memory.move_to_end(key)
    return _memory[key]


def _teach(cell: Cell, data: Dataset) -> Classroom:
    import numpy as np

    from labelweave.bench.running.fitting import quick_rows
    from labelweave.data.scenarios import share_among_teachers

    data = quick_rows(cell, data)
    settings = cell.scenario.settings
    how = {name: settings[name] for name in ("overlap", "teacher_rows") if name in settings}
    shares = share_among_teachers(
        data, settings.get("n_teachers", 2), random_state=cell.seed, **how
    )
    taught_rows = np.concatenate([share.rows for share in shares.teachers])
    data = _standardised(data, taught_rows)
    teachers = [
        _teacher(cell, data[share.rows].select_labels(share.label_names), number)
        for number, share in enumerate(shares.teachers)
    ]
    rest = replace(data[shares.rest_rows], row_ids=shares.rest_rows.tolist())
    parts = cell.protocol.parts(rest, cell.seed)
    assert parts.train.row_ids is not None
    rows = np.concatenate([taught_rows, np.asarray(parts.train.row_ids)])
    return Classroom(teachers, parts, _pooled(data, shares.teachers), data[rows])


def _pooled(data: Dataset, shares: Sequence[TeacherShare]) -> Dataset:
    """The rows of all teachers; labels that the teacher of a row did not have are unknown."""
    import numpy as np

    from labelweave.labels import as_labels

    known = np.concatenate(
        [
            np.tile(np.isin(data.label_names, share.label_names), (len(share.rows), 1))
            for share in shares
        ]
    )
    pooled = data[np.concatenate([share.rows for share in shares])]
    values = np.where(known, pooled.Y.to_numpy(), np.nan)
    return replace(pooled, Y=as_labels(values, names=data.label_names))


def _teacher(cell: Cell, rows: Dataset, number: int) -> Teacher:
    # Named here, not looked up: a cell must be run again when the chain's code changes.
    from labelweave.dependent.ofcc import OFCC
    from labelweave.methods import make
    from labelweave.scattered.teacher import Teacher

    settings = dict(cell.scenario.settings.get("teacher_settings", {}))
    id = cell.scenario.settings.get("teacher", "ofcc")
    if source := cell.scenario.settings.get("teacher_published", False):
        role = "teacher-1" if number == 0 else "teacher-2"
        source = "program" if source is True else source
        model = OFCC.published(cell.data.source, source=source, role=role)
        model.set_params(**settings)
    else:
        model = OFCC(**settings) if id == "ofcc" else make(id, **settings)
    own = model.get_params(deep=False)
    if "random_state" in own:
        model.set_params(random_state=1000 * cell.seed + number)
    if cell.quick is not None and "epochs" in own:
        model.set_params(epochs=min(own["epochs"], cell.quick.epochs))
    return Teacher(model.fit(rows.X, rows.Y), name=f"teacher {number + 1}")


def _standardised(data: Dataset, rows: np.ndarray) -> Dataset:
    """Standardise dense features on these rows; sparse features are scaled by each network."""
    import numpy as np
    import scipy.sparse as sp

    if sp.issparse(data.X):
        return data
    X = np.asarray(data.X, dtype=np.float64)
    mean, spread = X[rows].mean(axis=0), X[rows].std(axis=0)
    return replace(data, X=(X - mean) / np.where(spread > 0, spread, 1))


def _predict(cell: Cell, classroom: Classroom, role: str) -> Predictions:
    import time

    import numpy as np

    from labelweave.bench.running.fitting import _history

    parts = classroom.parts
    if role == "nothing":
        shapes = [(len(part), part.Y.n_labels) for part in (parts.validation, parts.test)]
        at_validation, at_test = (np.zeros(shape, dtype=np.float32) for shape in shapes)
        return Predictions(at_validation, at_test, parts.test.label_names, 0.0, None, {})
    started = time.perf_counter()
    if role == "student":
        model = _make_method(cell, teachers=classroom.teachers, match="exact")
        # Only features: the labels of the rows are hidden from the student.
        model.fit(parts.train.X, validation=parts.validation.X)
    elif role == "attainable":
        model = _make_method(cell).fit(classroom.pooled.X, classroom.pooled.Y)
    else:
        rows = classroom.all_rows if role == "bound" else parts.train
        model = _make_method(cell).fit(rows.X, rows.Y, validation=parts.validation)
    seconds = time.perf_counter() - started
    artifacts = {}
    if role == "student":
        artifacts["amalgamation"] = {
            "notes": model.notes_,
            "fidelity": model.fidelity_.to_dict("records"),
            "disagreement": model.disagreement_.to_dict("records"),
        }
    return Predictions(
        model.predict_proba(parts.validation.X),
        model.predict_proba(parts.test.X),
        tuple(model.label_names_),
        seconds,
        _history(getattr(model, "student_", model)),
        artifacts,
    )


def _make_method(cell: Cell, **more: Any) -> Any:
    """Make the unfitted method of a cell, with fewer epochs in a smoke run."""
    from labelweave.bench.running.method_settings import published_settings
    from labelweave.pipeline.recipe import Recipe

    start = published_settings(cell.method, cell.published, cell.data.source)
    parameters = {"random_state": cell.seed, **start, **cell.settings, **more}
    model = Recipe(cell.method, parameters).make()
    if cell.quick is not None:
        inner = model
        if "student" in model.get_params(deep=False):
            inner = model.default_part("student")
            model.set_params(student=inner)
        if "epochs" in inner.get_params(deep=False):
            inner.set_params(epochs=min(inner.epochs, cell.quick.epochs))
    return model


def _scores(
    cell: Cell, parts: Parts, predictions: Predictions
) -> tuple[dict[str, float | None], dict[str, float]]:
    from labelweave.bench.evaluation_protocol import PANEL
    from labelweave.bench.running.cell_scores import score_test_rows

    return score_test_rows(
        cell.protocol,
        (parts.validation.Y.select(predictions.labels), predictions.at_validation),
        (parts.test.Y.select(predictions.labels), predictions.at_test),
        (*PANEL, *cell.metrics),
    )


def _score_teachers(cell: Cell, classroom: Classroom) -> Outcome:
    """Average the scores of the teachers on their own labels."""
    import statistics

    from labelweave.bench.running.fitting import Outcome
    from labelweave.pipeline.data_parts import Parts

    scores = []
    for teacher in classroom.teachers:
        own = Parts(*(part.select_labels(teacher.labels) for part in classroom.parts))
        at_validation, at_test = (teacher.probabilities(part.X) for part in own[1:])
        predictions = Predictions(at_validation, at_test, teacher.labels, 0.0, None, {})
        scores.append(_scores(cell, own, predictions)[0])
    means: dict[str, float | None] = {}
    for name in scores[0]:
        values = [value for one in scores if (value := one[name]) is not None]
        means[name] = statistics.fmean(values) if len(values) == len(scores) else None
    return Outcome(classroom.sizes(), means, {}, 0.0, None, {"teachers": scores})

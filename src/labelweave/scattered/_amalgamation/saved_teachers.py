"""Teachers in the folder of a model that consists of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone

from labelweave.calibration import LabelCalibrator
from labelweave.exceptions import InputError
from labelweave.scattered._amalgamation.remote_model import RemoteModel
from labelweave.scattered._amalgamation.vocabulary import Vocabulary
from labelweave.scattered.teacher import Teacher

__all__ = ["loaded_teachers", "loaded_vocabulary", "saved_teachers"]


def saved_teachers(teachers: Sequence[Teacher]) -> list[dict[str, Any]]:
    """What is written of each teacher: its model, or its address, and how it is used."""
    return [_saved(teacher) for teacher in teachers]


def loaded_teachers(saved: Any) -> list[Teacher]:
    """The teachers that `saved_teachers` described; what cannot be right is refused."""
    return [_loaded(dict(state)) for state in saved]


def loaded_vocabulary(names: np.ndarray, teachers: Sequence[Teacher], columns: Any) -> Vocabulary:
    """The common vocabulary of loaded teachers, from the columns of each one's labels."""
    places = [np.asarray(part) for part in columns]
    fits = len(places) == len(teachers) and all(
        part.shape == (len(teacher.labels),)
        and part.dtype.kind == "i"
        and len(set(part.tolist())) == len(part)
        and ((part >= 0) & (part < len(names))).all()
        for part, teacher in zip(places, teachers, strict=True)
    )
    if not fits or set(np.concatenate(places).tolist()) != set(range(len(names))):
        raise InputError("the labels of the teachers and of the model do not fit together")
    spellings: list[list[str]] = [[] for _ in names]
    for part, teacher in zip(places, teachers, strict=True):
        for place, label in zip(part, teacher.labels, strict=True):
            spellings[place].append(label)
    return Vocabulary(
        tuple(str(name) for name in names),
        tuple(part.astype(np.intp) for part in places),
        tuple(tuple(sorted(set(spelt))) for spelt in spellings),
    )


def _saved(teacher: Teacher) -> dict[str, Any]:
    model = teacher.model
    if isinstance(model, RemoteModel):
        # With its labels, so that loading sends no request.
        listed = getattr(model, "label_names_", list(teacher.labels))
        model = clone(model).set_params(labels=listed)
    elif not isinstance(model, BaseEstimator):
        raise InputError(
            f"the teacher {teacher.name!r} cannot be saved: it is a {type(model).__name__}, and a "
            "model folder contains estimators and addresses only; train a student instead (ant+, "
            "tc)"
        )
    calibrator = None
    if teacher.calibrator is not None:
        fitted = {n: v for n, v in vars(teacher.calibrator).items() if n.endswith("_")}
        calibrator = {"parameters": teacher.calibrator.get_params(), "fitted": fitted}
    return {
        "model": model,
        "labels": list(teacher.labels),
        "name": teacher.name,
        "thresholds": np.array(teacher.thresholds),
        "abstain": teacher.abstain,
        "columns": teacher.columns,
        "prevalence": teacher.prevalence,
        "calibrator": calibrator,
    }


def _loaded(state: Mapping[str, Any]) -> Teacher:
    # A text would be opened: as a folder, or as an address that nobody has trusted.
    if not isinstance(state["model"], BaseEstimator):
        raise InputError("a teacher is not a model")
    columns = state["columns"]
    if columns is not None and not all(type(j) is int and j >= 0 for j in columns):
        raise InputError("the columns of a teacher are not whole numbers from 0 on")
    if not all(isinstance(label, str) for label in state["labels"]):
        raise InputError("the labels of a teacher are not texts")
    teacher = Teacher(
        state["model"],
        state["labels"],
        name=str(state["name"]),
        threshold=state["thresholds"],
        abstain=float(state["abstain"]),
        columns=columns,
        prevalence=state["prevalence"],
    )
    if state["calibrator"] is not None:
        teacher.calibrator = _loaded_calibrator(state["calibrator"], len(teacher.labels))
    return teacher


def _loaded_calibrator(state: Mapping[str, Any], n_labels: int) -> LabelCalibrator:
    calibrator = LabelCalibrator(**state["parameters"])
    calibrator._validate_params()
    for name, value in state["fitted"].items():
        if name not in ("slope_", "offset_", "knots_", "first_knot_"):
            raise InputError(f"{name!r} is not a fitted attribute of a calibrator")
        setattr(calibrator, name, value)
    calibrated = calibrator.transform(np.full((1, n_labels), 0.5))
    if calibrated.shape != (1, n_labels) or not np.isfinite(calibrated).all():
        raise InputError("the calibrator of a teacher does not fit its labels")
    return calibrator

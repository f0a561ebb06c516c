"""From what a request holds to what a model takes, within the limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from pydantic import Field, Strict, StringConstraints, TypeAdapter, ValidationError

from labelweave.exceptions import InputError
from labelweave.serve.loaded import LoadedModel
from labelweave.serve.problems import ProblemError, sentence_of
from labelweave.serve.settings import Settings

__all__ = ["as_model_input", "check_count"]

_LARGEST = 1e300
_NUMBERS = {float, int}
Number = Annotated[float, Strict(), Field(allow_inf_nan=False, ge=-_LARGEST, le=_LARGEST)]
_VECTORS = TypeAdapter(list[list[Number]])
_RECORDS = TypeAdapter(list[dict[str, Number]])
_TEXTS = TypeAdapter(list[Annotated[str, Strict(), StringConstraints()]])


def check_count(rows: int, settings: Settings) -> None:
    """Refuse a request of no inputs or of too many."""
    if rows == 0:
        raise InputError("inputs is empty: send at least one")
    if rows > settings.max_rows:
        raise ProblemError(
            413, f"There are {rows:,} inputs, but a request takes {settings.max_rows:,} at most."
        )


def as_model_input(
    inputs: Sequence[Any], loaded: LoadedModel, settings: Settings, *, absent: str = "error"
) -> Any:
    """Checked rows for `predict_proba`: an array for vectors and records, a list for texts.

    Parameters
    ----------
    inputs : list
        Lists of numbers, objects of feature names and numbers, or texts.
    loaded : LoadedModel
    settings : Settings
    absent : {"error", "zero"}
        What a feature that a record leaves out is.
    """
    check_count(len(inputs), settings)
    if loaded.kind == "texts":
        return _texts(inputs, settings)
    if loaded.kind == "images":
        raise InputError("this model takes images: send one to its address predict/image")
    if isinstance(inputs[0], dict):
        return _records(inputs, loaded, absent)
    if isinstance(inputs[0], str):
        raise InputError("this model takes vectors of numbers, not texts")
    if all(type(row) is list and set(map(type, row)) <= _NUMBERS for row in inputs):
        rows: Sequence[Any] = inputs  # the common case, and quicker to see than to validate
    else:
        rows = _valid(_VECTORS, inputs)
    for i, row in enumerate(rows):
        if len(row) != loaded.width:
            raise InputError(
                f"inputs.{i} has {len(row):,} numbers, but the model takes {loaded.width:,}"
            )
    try:
        X = np.array(rows, dtype=np.float64)
    except OverflowError:  # an integer beyond any float
        X = np.full((1, 1), np.inf)
    if not np.abs(X).max() <= _LARGEST:  # not finite is not smaller
        _valid(_VECTORS, inputs)  # says which one
    return X


def _texts(inputs: Sequence[Any], settings: Settings) -> list[str]:
    if not isinstance(inputs[0], str):
        raise InputError("this model takes texts")
    texts = _valid(_TEXTS, inputs)
    for i, text in enumerate(texts):
        if len(text) > settings.max_text:
            raise ProblemError(
                413,
                f"The text inputs.{i} has {len(text):,} characters; {settings.max_text:,} are "
                "the most.",
            )
    return texts


def _records(inputs: Sequence[Any], loaded: LoadedModel, absent: str) -> np.ndarray:
    if loaded.feature_names is None:
        raise InputError("the features of this model have no names: send lists of numbers")
    records = _valid(_RECORDS, inputs)
    X = np.zeros((len(records), len(loaded.feature_names)))
    for i, record in enumerate(records):
        if strange := [name for name in record if name not in loaded.places]:
            raise InputError(f"inputs.{i} has a feature {strange[0][:80]!r} unknown to the model")
        if absent == "error" and len(record) < len(loaded.feature_names):
            missing = next(name for name in loaded.feature_names if name not in record)
            raise InputError(
                f"inputs.{i} lacks the feature {missing!r}; absent='zero' takes what is left out "
                "as 0"
            )
        X[i, [loaded.places[name] for name in record]] = list(record.values())
    return X


def _valid(adapter: TypeAdapter[Any], inputs: Sequence[Any]) -> Any:
    try:
        return adapter.validate_python(inputs)
    except ValidationError as error:
        raise InputError(f"inputs.{sentence_of(error.errors(include_input=False))}") from None

"""From the inputs of a request to rows for a model, and from probabilities to labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from pydantic import FailFast, Field, Strict, StringConstraints, TypeAdapter, ValidationError

from labelweave.exceptions import InputError
from labelweave.serve.problems import ProblemError, validation_message
from labelweave.serve.settings import Settings
from labelweave.tables.input_columns import InputColumn, new_categories, read_records
from labelweave.tables.table import Table
from labelweave.thresholds import FixedThreshold
from labelweave.top_labels import best_entries

if TYPE_CHECKING:
    from labelweave.serve.loaded_model import LoadedModel

_MAX_NUMBER = 1e300
Number = Annotated[float, Strict(), Field(allow_inf_nan=False, ge=-_MAX_NUMBER, le=_MAX_NUMBER)]
NumberOrNull = Number | None
# They stop at the first fault: there may be millions.
_VECTORS = TypeAdapter(Annotated[list[Annotated[list[Number], FailFast()]], FailFast()])
_VECTORS_WITH_BLANKS = TypeAdapter(
    Annotated[list[Annotated[list[NumberOrNull], FailFast()]], FailFast()]
)
_RECORDS = TypeAdapter(Annotated[list[dict[str, Number]], FailFast()])
_RECORDS_WITH_BLANKS = TypeAdapter(Annotated[list[dict[str, NumberOrNull]], FailFast()])
_TEXTS = TypeAdapter(Annotated[list[Annotated[str, Strict(), StringConstraints()]], FailFast()])


# -- inputs ----------------------------------------------------------------------------


def check_n_rows(n_rows: int, settings: Settings) -> None:
    """Refuse a request without inputs or with too many."""
    if n_rows == 0:
        raise InputError("inputs is empty: send at least one input")
    if n_rows > settings.max_rows:
        raise ProblemError(
            413,
            f"There are {n_rows:,} inputs, but a request may have at most {settings.max_rows:,}.",
        )


def read_inputs(
    inputs: Sequence[Any], loaded: LoadedModel, settings: Settings, *, absent: str = "error"
) -> Any:
    """Check inputs and convert them: to an array, a table or a list of texts.

    * `inputs`: Lists of numbers, objects of names and values, or texts.
    * `absent`: The meaning of a feature that a record leaves out.
    """
    check_n_rows(len(inputs), settings)
    if loaded.facts.input == "records":
        return _read_table(inputs, loaded.facts.columns or [], settings, absent)
    if absent == "blank":
        raise InputError("absent='blank' is for tables of mixed columns: use 'zero' or 'error'")
    if loaded.facts.input == "texts":
        return _read_texts(inputs, settings)
    if loaded.facts.input == "images":
        raise InputError("this model predicts from images: send one to its address predict/image")
    if isinstance(inputs[0], dict):
        return _read_records(inputs, loaded, absent)
    if isinstance(inputs[0], str):
        raise InputError("this model predicts from vectors of numbers, not from texts")
    # Looking at the types is much quicker than validating, and almost always enough.
    only_numbers = all(type(row) is list and set(map(type, row)) <= {float, int} for row in inputs)
    vectors = _VECTORS_WITH_BLANKS if loaded.facts.takes_blanks else _VECTORS
    rows = inputs if only_numbers else _validate(vectors, inputs)
    for i, row in enumerate(rows):
        if len(row) != loaded.facts.n_features:
            raise InputError(
                f"inputs.{i} has {len(row):,} numbers, but the model expects "
                f"{loaded.facts.n_features:,}"
            )
    try:
        X = np.array(rows, dtype=np.float64)
    except OverflowError:  # an integer that no float can hold
        X = np.full((1, 1), np.inf)
    if not np.fmax.reduce(np.abs(X), axis=None, initial=0) <= _MAX_NUMBER or (
        only_numbers and np.isnan(X).any()
    ):
        _validate(vectors, inputs)  # raises an error that names the number
    return X


def new_category_warnings(inputs: Sequence[Any], loaded: LoadedModel) -> list[str]:
    """Return one sentence per column with categories that no training row had."""
    sentences = []
    for column in loaded.facts.columns or ():
        if numbers := new_categories(inputs, column):
            value = str(inputs[numbers[0]][column.name])[:80]
            others = f" and {len(numbers) - 1} more" if len(numbers) > 1 else ""
            sentences.append(
                f"inputs.{numbers[0]}.{column.name}{others}: no training row had {value!r}"
            )
    return sentences


def _read_table(
    inputs: Sequence[Any], columns: Sequence[InputColumn], settings: Settings, absent: str
) -> Table:
    if absent == "zero":
        raise InputError("absent='zero' is for models of numbers: use 'blank' or 'error'")
    for i, record in enumerate(inputs):
        if not isinstance(record, dict):
            raise InputError(
                f"inputs.{i}: this model predicts from records, objects of column names and values"
            )
        for name, value in record.items():
            if isinstance(value, str) and len(value) > settings.max_text:
                raise ProblemError(
                    413,
                    f"The text inputs.{i}.{name[:80]} has {len(value):,} characters, but a text "
                    f"may have at most {settings.max_text:,}.",
                )
    return read_records(inputs, columns, absent=absent, place="inputs")


def _read_texts(inputs: Sequence[Any], settings: Settings) -> list[str]:
    if not isinstance(inputs[0], str):
        raise InputError("this model predicts from texts")
    texts = _validate(_TEXTS, inputs)
    for i, text in enumerate(texts):
        if len(text) > settings.max_text:
            raise ProblemError(
                413,
                f"The text inputs.{i} has {len(text):,} characters, but a text may have at most "
                f"{settings.max_text:,}.",
            )
    return texts


def _read_records(inputs: Sequence[Any], loaded: LoadedModel, absent: str) -> np.ndarray:
    names, positions = loaded.feature_names, loaded.feature_positions
    if names is None:
        raise InputError("the features of this model have no names: send lists of numbers")
    for i, record in enumerate(inputs):
        if isinstance(record, dict):
            unknown = next((name for name in record if name not in positions), None)
            if unknown is not None:
                raise InputError(f"inputs.{i}: the model has no feature {unknown[:80]!r}")
    records = _validate(_RECORDS_WITH_BLANKS if loaded.facts.takes_blanks else _RECORDS, inputs)
    X = np.zeros((len(records), len(names)))
    for i, record in enumerate(records):
        if absent == "error" and len(record) < len(names):
            missing = next(name for name in names if name not in record)
            raise InputError(
                f"inputs.{i} lacks the feature {missing!r}; absent='zero' sets it to 0"
            )
        X[i, [positions[name] for name in record]] = list(record.values())
    return X


def _validate(adapter: TypeAdapter[Any], inputs: Sequence[Any]) -> Any:
    try:
        return adapter.validate_python(inputs)
    except ValidationError as error:
        message = validation_message(error.errors(include_input=False))
        raise InputError(f"inputs.{message}") from None


# -- labels ----------------------------------------------------------------------------


class ScoredRows(NamedTuple):
    """Probabilities of rows, the label names of their columns, and the model's threshold."""

    probabilities: Any  # An array; with many labels a sparse matrix of the best of each row
    names: np.ndarray
    threshold: Any


class LabelSelection(NamedTuple):
    """Which labels a request asks for."""

    threshold: float | None = None  # Replaces the threshold of the model
    # The k best labels; combined with a threshold, those of the k best that reach it
    top_k: int | None = None
    labels: Sequence[str] | None = None  # The labels to consider; all by default
    scores: bool = False  # Add the scores of all labels considered


def select_labels(
    scored: ScoredRows, selection: LabelSelection, known: np.ndarray | None = None
) -> list[dict[str, Any]]:
    """Return the selected labels of each row, best first.

    * `known`: 1 and 0 where a label is known; known labels do not depend on the threshold.

    >>> probabilities, names = np.array([[0.2, 0.9, 0.6]]), np.array(["a", "b", "c"])
    >>> scored = ScoredRows(probabilities, names, FixedThreshold(0.5))
    >>> select_labels(scored, LabelSelection())
    [{'labels': [{'label': 'b', 'score': 0.9}, {'label': 'c', 'score': 0.6}]}]
    >>> select_labels(scored, LabelSelection(top_k=1, labels=["a", "c"]))
    [{'labels': [{'label': 'c', 'score': 0.6}]}]
    """
    if sp.issparse(scored.probabilities):
        return _select_best_labels(scored, selection)
    P, names = scored.probabilities, scored.names
    if selection.threshold is not None:
        selected = FixedThreshold(selection.threshold).apply(P).astype(bool)
    elif selection.top_k is not None:
        selected = np.ones(P.shape, dtype=bool)
    else:
        selected = scored.threshold.apply(P).astype(bool)
    if known is not None:
        selected = np.where(np.isnan(known), selected, known == 1)
    if selection.labels is not None:
        kept = _columns(names, selection.labels)
        P, selected, names = P[:, kept], selected[:, kept], names[kept]
    if selection.top_k is not None:
        order = np.argsort(-P, axis=1, kind="stable")
        np.put_along_axis(selected, order[:, selection.top_k :], False, axis=1)
    rows, columns = np.nonzero(selected)
    labels = _ranked(rows, columns, P[rows, columns], len(P), names)
    if not selection.scores:
        return [{"labels": row} for row in labels]
    rows, columns = np.indices(P.shape).reshape(2, -1)
    scores = _ranked(rows, columns, P[rows, columns], len(P), names)
    return [{"labels": a, "scores": b} for a, b in zip(labels, scores, strict=True)]


def _select_best_labels(scored: ScoredRows, selection: LabelSelection) -> list[dict[str, Any]]:
    """Return the same from the scores of the best labels of each row; the others have none."""
    P, names = scored.probabilities, scored.names
    chosen = P
    if selection.threshold is not None:
        chosen = P.multiply(FixedThreshold(selection.threshold).apply(P))
    elif selection.top_k is None:
        chosen = P.multiply(scored.threshold.apply(P))
    chosen = sp.csr_array(chosen)
    if selection.labels is not None:
        kept = _columns(names, selection.labels)
        P, chosen, names = P[:, kept], chosen[:, kept], names[kept]
    rows, columns, values = sp.find(chosen)
    if selection.top_k is not None:
        best = best_entries(rows, values, selection.top_k)
        rows, columns, values = rows[best], columns[best], values[best]
    labels = _ranked(rows, columns, values, P.shape[0], names)
    if not selection.scores:
        return [{"labels": row} for row in labels]
    rows, columns, values = sp.find(P)
    scores = _ranked(rows, columns, values, P.shape[0], names)
    return [{"labels": a, "scores": b} for a, b in zip(labels, scores, strict=True)]


def _ranked(
    rows: np.ndarray, columns: np.ndarray, values: np.ndarray, n_rows: int, names: np.ndarray
) -> list[list[dict[str, Any]]]:
    """Return the labels of each row with their scores, best first."""
    scores = values.astype(np.float64)
    order = np.lexsort((columns, -scores, rows))  # equal scores keep the order of the model
    labels = [
        {"label": name, "score": score}
        for name, score in zip(
            names[columns[order]].tolist(), scores[order].round(6).tolist(), strict=True
        )
    ]
    ends = np.cumsum(np.bincount(rows, minlength=n_rows)).tolist()
    return [labels[first:last] for first, last in zip([0, *ends], ends, strict=False)]


def _columns(names: np.ndarray, labels: Sequence[str]) -> list[int]:
    position = {name: j for j, name in enumerate(names.tolist())}
    if unknown := [label for label in labels if label not in position]:
        raise InputError(f"labels: the model has no label {unknown[0][:80]!r}")
    return [position[label] for label in dict.fromkeys(labels)]

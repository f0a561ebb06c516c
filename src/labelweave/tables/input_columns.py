"""The columns that a fitted model expects in its rows, and reading values that come without types.

A table encoder knows the kinds of its columns. Of a pipeline they are derived from its first
transformers: columns of an encoder of categories are categories, columns of a vectorizer are texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.impute._base import _BaseImputer
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, TargetEncoder
from sklearn.utils import get_tags

from labelweave.exceptions import InputError
from labelweave.tables.encoder import TableEncoder
from labelweave.tables.kinds import is_yes_or_no, parsed_dates, read_words
from labelweave.tables.table import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "InputColumn",
    "columns_of_encoder",
    "columns_of_steps",
    "new_categories",
    "read_records",
    "takes_texts",
]

NOT_USED = "not used"
_LARGEST = 1e300
_EXAMPLE_DATE = "2024-12-31"
_ENCODERS = (OneHotEncoder, OrdinalEncoder, TargetEncoder)
# Types of values by kind; other kinds take any.
_TYPES: dict[str, tuple[type, ...]] = {
    "number": (Real,),
    "text": (str,),
    "date": (str,),
    "image": (str,),
}


@dataclass(frozen=True)
class InputColumn:
    """A column that a model expects.

    * `kind`: A kind of :mod:`labelweave.tables.kinds`, "any" where it is not known, or "not used".
    * `may_be_blank`: Whether a row may have no value here.
    * `may_be_absent`: Whether a row may even lack the column, which then counts as blank.
    * `values`: The categories of the training rows, or None if they are not all known.
    * `types`: The types of values that are accepted, beside blanks.
    * `format`: The format of dates.
    * `blank`: What stands for a blank.
    """

    name: str
    kind: str
    may_be_blank: bool = True
    may_be_absent: bool = True
    values: tuple[Any, ...] | None = None
    types: tuple[type, ...] = (str, Real)
    format: str | None = None
    blank: Any = np.nan

    @property
    def is_used(self) -> bool:
        """Whether predictions depend on the column."""
        return self.kind != NOT_USED


# -- the columns of a model ------------------------------------------------------------


def columns_of_encoder(encoder: TableEncoder) -> list[InputColumn]:
    """Return the columns of a fitted table encoder.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"price": [2.5, None, 4.0, 1.0], "brand": ["a", "b", "a", "b"]})
    >>> [(c.name, c.kind, c.may_be_absent) for c in columns_of_encoder(TableEncoder().fit(table))]
    [('price', 'number', True), ('brand', 'category', False)]
    """
    parts = {part.name: part for part in encoder.columns_}
    columns = []
    for name in map(str, encoder.feature_names_in_):
        part = parts.get(name)
        if part is None:
            columns.append(InputColumn(name, NOT_USED))
            continue
        is_category = part.kind == "category"
        columns.append(
            InputColumn(
                name,
                part.kind,
                may_be_absent=bool(getattr(part, "has_blank", False)),
                values=tuple(part.values) if is_category and part.complete else None,
                types=_TYPES.get(part.kind, (str, Real)),
                format=getattr(part, "format", None),
            )
        )
    return columns


def columns_of_steps(step: Any) -> list[InputColumn] | None:
    """Return the columns that a transformer, or a pipeline, was fitted to; None without names."""
    if isinstance(step, TableEncoder):
        return columns_of_encoder(step)
    names = getattr(step, "feature_names_in_", None)
    if names is None and isinstance(step, FeatureUnion):
        names = getattr(step.transformer_list[0][1], "feature_names_in_", None)
    if names is None:
        return None
    uses: dict[str, list[InputColumn]] = {str(name): [] for name in names}
    for column in _uses(step, [str(name) for name in names]):
        uses[column.name].append(column)
    return [_combined(name, columns) for name, columns in uses.items()]


def _uses(step: Any, names: Sequence[str]) -> Iterator[InputColumn]:
    """Yield what a transformer makes of the columns with these names, which it receives."""
    if isinstance(step, ColumnTransformer):
        for name, part, _ in step.transformers_:
            if part != "drop":
                received = [names[k] for k in step._transformer_to_input_indices[name]]
                yield from _uses(part, received)
    elif isinstance(step, FeatureUnion):
        for _, part in step.transformer_list:
            yield from _uses(part, names)
    elif isinstance(step, Pipeline):
        steps = [part for _, part in step.steps if isinstance(part, BaseEstimator)]
        yield from _uses_of_chain(steps or ["passthrough"], names)
    elif isinstance(step, TableEncoder):
        yield from columns_of_encoder(step)
    elif isinstance(step, _ENCODERS):
        for name, values in zip(names, step.categories_, strict=True):
            yield _category(name, values)
    elif takes_texts(step):
        for name in names:
            yield InputColumn(name, "text", may_be_blank=False, may_be_absent=False, types=(str,))
    elif _takes_images(step):
        for name in names:
            yield InputColumn(name, "image", may_be_blank=False, may_be_absent=False, types=(str,))
    else:
        is_number = isinstance(step, BaseEstimator) and not get_tags(step).no_validation
        fills = isinstance(step, _BaseImputer)
        if fills and getattr(step, "_fit_dtype", np.dtype(float)).kind not in "biuf":
            is_number = False
        kind = "number" if is_number else "any"
        for name in names:
            yield InputColumn(
                name,
                kind,
                may_be_blank=fills or not is_number,
                may_be_absent=fills,
                types=_TYPES.get(kind, (str, Real)),
            )


def _uses_of_chain(steps: Sequence[Any], names: Sequence[str]) -> Iterator[InputColumn]:
    """Yield what transformers make of columns, one after the other: the first step decides.

    If it fills in blanks of categories, the second one does.
    """
    used = list(_uses(steps[0], names))
    is_imputer = isinstance(steps[0], _BaseImputer)
    if is_imputer and len(steps) > 1 and used[0].kind == "any":
        for column in _uses_of_chain(steps[1:], names):
            yield replace(column, may_be_blank=True, may_be_absent=True, blank=np.nan)
    else:
        yield from used


def _category(name: str, values: np.ndarray) -> InputColumn:
    known = [value for value in values.tolist() if value is not None and value == value]
    had_blank = len(known) < len(values)
    blank = None if any(value is None for value in values.tolist()) else np.nan
    return InputColumn(
        name,
        "category",
        may_be_blank=had_blank,
        may_be_absent=had_blank,
        values=tuple(known),
        types=tuple({str if isinstance(value, str) else Real for value in known}) or (str, Real),
        blank=blank,
    )


def _combined(name: str, uses: Sequence[InputColumn]) -> InputColumn:
    """The column as all its uses allow it."""
    used = [column for column in uses if column.is_used]
    if not used:
        return InputColumn(name, NOT_USED)
    known = [column for column in used if column.kind != "any"] or used
    known.sort(key=lambda column: column.kind != "image")  # one use that reads files is enough
    return replace(
        known[0],
        may_be_blank=all(column.may_be_blank for column in used),
        may_be_absent=all(column.may_be_absent for column in used),
    )


def takes_texts(step: Any) -> bool:
    """Whether a transformer expects a list of texts, by its tags or those of its parts.

    >>> from sklearn.feature_extraction.text import TfidfVectorizer
    >>> takes_texts(TfidfVectorizer()), takes_texts(OneHotEncoder())
    (True, False)
    """
    if isinstance(step, FeatureUnion):
        return any(takes_texts(part) for _, part in step.transformer_list)
    if isinstance(step, Pipeline):
        return bool(step.steps) and takes_texts(step.steps[0][1])
    if not isinstance(step, BaseEstimator):
        return False
    accepted = get_tags(step).input_tags
    return accepted.string and not accepted.two_d_array


def _takes_images(step: Any) -> bool:
    """Whether a transformer expects images, by its tags."""
    if not isinstance(step, BaseEstimator):
        return False
    accepted = get_tags(step).input_tags
    return accepted.three_d_array and not accepted.two_d_array


# -- records ---------------------------------------------------------------------------


def read_records(
    records: Sequence[Mapping[str, Any]],
    columns: Sequence[InputColumn],
    *,
    absent: str = "error",
    place: str = "row",
) -> Table:
    """Return records of names and values as a table, or raise an error that names the value.

    In a column of images only arrays of pixels are taken: whoever sends a record must not choose
    files that are read.

    Parameters
    ----------
    records : sequence of mappings
        None is a blank.
    columns : the columns of the model
    absent : {"error", "blank"}, default="error"
        Whether a record may lack a column that must not be absent.
    place : str
        What the messages call the records.
    """
    import pandas as pd

    by_name = {column.name: column for column in columns}
    for i, record in enumerate(records):
        for name in record:
            if name not in by_name:
                raise InputError(
                    f"{place}.{i}: the model has no column {name[:80]!r}; its columns are "
                    + _listed([column.name for column in columns if column.is_used])
                )
    series = {}
    for column in columns:
        if not column.is_used:
            series[column.name] = pd.Series([column.blank] * len(records), dtype=object)
            continue
        values = []
        for i, record in enumerate(records):
            value = record.get(column.name)
            if value is None:
                _check_blank(column, column.name in record, absent, f"{place}.{i}")
            else:
                _check_type(column, value, f"{place}.{i}.{column.name}")
            values.append(value)
        series[column.name] = _as_series(column, values, place)
    return Table(pd.DataFrame(series)).as_reported()


def new_categories(records: Sequence[Mapping[str, Any]], column: InputColumn) -> list[int]:
    """Return the numbers of the records whose category no training row had."""
    if column.kind != "category" or column.values is None:
        return []
    import pandas as pd

    known = set(column.values)
    values = [record.get(column.name) for record in records]
    words = read_words(pd.Series(values, dtype=object))  # a table encoder stores words
    is_new = np.array([word not in known for word in words.values] + [False])[words.codes]
    return [int(i) for i in np.flatnonzero(is_new) if values[i] not in known]


def _check_blank(column: InputColumn, is_null: bool, absent: str, place: str) -> None:
    if column.may_be_blank and (is_null or column.may_be_absent or absent == "blank"):
        return
    if is_null:
        raise InputError(f"{place}.{column.name} is null, but the column must not be blank")
    or_null = ", null if it is not known, or absent='blank'" if column.may_be_blank else ""
    raise InputError(
        f"{place} lacks the column {column.name!r}, which had no blanks in training: send its "
        f"value{or_null}"
    )


def _check_type(column: InputColumn, value: Any, place: str) -> None:
    if column.kind == "image":
        if isinstance(value, np.ndarray):
            return
        raise InputError(
            f"{place} must be an image, encoded in base64: files that a record names are not read"
        )
    if isinstance(value, list | dict | np.ndarray):
        raise InputError(f"{place} must be a single value, not {_type_of(value)}")
    if isinstance(value, int | float) and not abs(value) <= _LARGEST:
        raise InputError(f"{place} is not a number from -1e300 to 1e300")
    or_null = " or null" if column.may_be_blank else ""
    if column.kind == "yes/no" and not is_yes_or_no(value):
        raise InputError(f"{place} must be yes or no{or_null}, not the {_shown(value)}")
    is_bool = isinstance(value, bool) and column.kind == "number"
    if is_bool or not isinstance(value, column.types):
        words: dict[type, str] = {str: "a text", Real: "a number"}
        expected = " or ".join(words[kind] for kind in column.types)
        if column.kind == "date":
            expected = "a date as a text"
        raise InputError(f"{place} must be {expected}{or_null}, not the {_shown(value)}")


def _as_series(column: InputColumn, values: list[Any], place: str) -> pd.Series:
    import pandas as pd

    if column.kind == "number":
        return pd.Series([np.nan if value is None else value for value in values], dtype=float)
    if column.kind == "date":
        given = [i for i, value in enumerate(values) if value is not None]
        dates = np.array([values[i] for i in given], dtype=object)
        wrong = np.flatnonzero(parsed_dates(dates, column.format or "ISO8601").isna())
        if len(wrong):
            i = given[int(wrong[0])]
            shown = _EXAMPLE_DATE if column.format in (None, "ISO8601") else column.format
            raise InputError(
                f"{place}.{i}.{column.name} is {values[i][:40]!r}, which is not a date of the form "
                f"{shown}"
            )
    return pd.Series([column.blank if v is None else v for v in values], dtype=object)


def _type_of(value: Any) -> str:
    return "a list" if isinstance(value, list) else "an object"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        return f"text {value[:40]!r}"
    return f"value {str(value).lower()}" if isinstance(value, bool) else f"number {value}"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name[:80]) for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"

"""The kinds of columns of a table, and how each column is read.

The type of a column decides first: categories, true and false, and dates are what they are, and
numbers are numbers. Only the values of strings and mixed objects are looked at:

* every value is a number, a date, or one of yes/no, true/false, y/n, t/f: a column of this kind;
* nearly every value is different and has several words or is long: texts;
* every value is different and is one short word: an id;
* everything else: categories.

A column of paths to image files is one of images only if this kind is given.

Whole numbers in a column that is named like an id are an id if all are different, otherwise
categories. A column with one value and no blank is constant.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelweave.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "KINDS",
    "LEFT_OUT",
    "Words",
    "check_kinds",
    "date_format",
    "find_kind",
    "is_dates",
    "is_yes_or_no",
    "parsed_dates",
    "read_dates",
    "read_numbers",
    "read_words",
]

KINDS = ("number", "category", "yes/no", "date", "text", "image", "id", "constant", "all blank")
CHOICES = KINDS[:7]  # those that can be given
LEFT_OUT = {
    "id": "every row has its own value",
    "constant": "every row has the same value",
    "all blank": "every cell is blank",
}
_YES = {"yes": 1.0, "true": 1.0, "y": 1.0, "t": 1.0, "no": 0.0, "false": 0.0, "n": 0.0, "f": 0.0}
_ID_NAME = re.compile(
    r"(?i:^unnamed: 0$|^index$|^uuid$|^guid$)|(^|[^A-Za-z])(id|ID|Id)$|[a-z]I[dD]$"
)
_DATE_START = re.compile(r"\d{4}-\d{1,2}(-\d{1,2}|$)|\d{1,2}([./])\d{1,2}\2\d{4}")
_DAYS = ("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y")
_TIMES = ("", " %H:%M", " %H:%M:%S")
_FORMATS = ("ISO8601", *(day + time for day in _DAYS for time in _TIMES))
_NUMBER = re.compile(r"[-+]?[0-9]{1,16}(\.[0-9]{0,16})?")
_LARGEST_EXACT = 2.0**53  # whole numbers up to here are exact
_MANY_WORDS = 3.0  # mean number of words from which different values are texts
_LONG = 40.0  # or mean length
_MOSTLY_DIFFERENT = 0.2  # distinct values per row from which long values are texts


@dataclass(frozen=True)
class Words:
    """The distinct values of a column as strings, and the value of each row (-1: blank)."""

    codes: np.ndarray
    values: np.ndarray

    def row_of(self, value: int) -> int:
        """Return the first row that has this value."""
        return int(np.argmax(self.codes == value))


def check_kinds(kinds: Mapping[str, str], names: Collection[str]) -> None:
    """Raise an error about a kind that there is not, or of a column that there is not."""
    for name, kind in kinds.items():
        if name not in names:
            raise InputError(f"kinds names the column {name!r}, which the table does not have")
        if kind not in CHOICES:
            raise InputError(
                f"{kind!r}, the kind given for the column {name!r}, is no kind of a column: choose "
                f"one of {', '.join(CHOICES)}",
                parameter="kinds",
            )


def check_cells(column: pd.Series, kind: str) -> None:
    """Raise an error about the first cell that cannot be of a given kind."""
    if kind in ("number", "yes/no"):
        read_numbers(column, yes_no=kind == "yes/no")
    elif kind == "date" and not is_dates(column.dtype):
        words = read_words(column)
        read_dates(column, date_format(words.values), words)


def find_kind(column: pd.Series) -> tuple[str, Words | None]:
    """Return the kind of a column, and its words if its values had to be looked at."""
    from pandas.api import types

    dtype = column.dtype
    blank = column.isna().to_numpy()
    if blank.all():
        return "all blank", None
    if types.is_bool_dtype(dtype) and not _is_category(dtype):
        return _unless_constant("yes/no", column, blank), None
    if types.is_numeric_dtype(dtype) or types.is_timedelta64_dtype(dtype):
        if _ID_NAME.search(str(column.name)) and _is_whole(column[~blank]):
            return ("id" if column[~blank].is_unique else "category"), None
        return _unless_constant("number", column, blank), None
    if is_dates(dtype):
        return _unless_constant("date", column, blank), None
    words = read_words(column)
    if not len(words.values):
        return "all blank", words
    if len(words.values) == 1 and (words.codes == 0).all():
        return "constant", words
    return ("category" if _is_category(dtype) else _kind_of_words(column, words)), words


def _is_whole(column: pd.Series) -> bool:
    from pandas.api import types

    if types.is_integer_dtype(column.dtype):
        return True
    is_float = types.is_float_dtype(column.dtype)
    return is_float and bool((column == np.rint(column.to_numpy(dtype=np.float64))).all())


def _unless_constant(kind: str, column: pd.Series, blank: np.ndarray) -> str:
    values = column.to_numpy()
    constant = not blank.any() and bool((values == values[0]).all())
    return "constant" if constant else kind


def _kind_of_words(column: pd.Series, words: Words) -> str:
    values = words.values
    if column.dtype == object and isinstance(column.iloc[words.row_of(0)], datetime.date):
        return "date"
    numbers = _as_numbers(values)
    n_rows = int((words.codes >= 0).sum())
    all_different = len(values) == n_rows
    if not np.isnan(numbers).any():
        whole = bool((numbers == np.rint(numbers)).all())
        if whole and _ID_NAME.search(str(column.name)):
            return "id" if all_different else "category"
        return "number"
    if all(value.lower() in _YES for value in values):
        return "yes/no"
    if date_format(values) is not None:
        return "date"
    n_words = np.mean([value.count(" ") + 1 for value in values])
    length = np.mean([len(value) for value in values])
    is_long = n_words >= _MANY_WORDS or length >= _LONG
    if is_long and len(values) >= _MOSTLY_DIFFERENT * n_rows:
        return "text"
    if all_different and n_rows > 1:
        return "text" if n_words >= 1.5 else "id"
    return "category"


def read_words(column: pd.Series) -> Words:
    """Read the distinct values of a column as strings without spaces around them."""
    import pandas as pd

    try:
        codes, values = pd.factorize(column)
    except TypeError:
        row = next(i for i, value in enumerate(column) if not _is_hashable(value))
        raise InputError(
            f"row {row} of the column {column.name!r} is a {type(column.iloc[row]).__name__}, not "
            "a single value: make it columns of its own or leave it out"
        ) from None
    words = np.array([_word(value) for value in values] or [None], dtype=object)
    merged, distinct = pd.factorize(words)
    merged = np.append(merged, -1).astype(np.int32)  # the last is that of blank cells
    return Words(merged[codes], distinct.astype(object))


def read_numbers(
    column: pd.Series, words: Words | None = None, *, yes_no: bool = False
) -> np.ndarray:
    """Read a column of numbers, or of yes and no; blanks are NaN."""
    from pandas.api import types

    dtype = column.dtype
    if types.is_timedelta64_dtype(dtype):
        return column.dt.total_seconds().to_numpy(dtype=np.float64) / 86_400
    if types.is_numeric_dtype(dtype):
        numbers = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        words = words or read_words(column)
        of_value = _as_numbers(words.values)
        if yes_no:
            pairs = zip(words.values, of_value, strict=True)
            of_value = np.array([_YES.get(word.lower(), number) for word, number in pairs])
        _refuse(np.isnan(of_value), words, column, "yes or no" if yes_no else "a number")
        numbers = np.append(of_value, np.nan)[words.codes]
    if np.isinf(numbers).any():
        row = int(np.argmax(np.isinf(numbers)))
        raise InputError(
            f"X contains infinity at row {row}, column {column.name!r}: bound it first"
        )
    return numbers


def read_dates(column: pd.Series, format: str | None, words: Words | None = None) -> np.ndarray:
    """Read a column of dates as seconds since 1970, blanks NaN; strings are of this format."""
    import pandas as pd
    from pandas.api import types

    if isinstance(column.dtype, _period_type()):
        column = column.dt.to_timestamp()
    if types.is_datetime64_any_dtype(column.dtype):
        moments = pd.DatetimeIndex(column)
        return _seconds(moments.tz_convert(None) if moments.tz is not None else moments)
    words = words or read_words(column)
    moments = parsed_dates(words.values, format or "ISO8601")
    _refuse(np.asarray(moments.isna()), words, column, f"a date of the form {_shown(format)}")
    return np.append(_seconds(moments), np.nan)[words.codes]


def is_dates(dtype: Any) -> bool:
    """Whether a column of this type holds dates, and no strings."""
    from pandas.api import types

    return types.is_datetime64_any_dtype(dtype) or isinstance(dtype, _period_type())


def date_format(values: np.ndarray) -> str | None:
    """Return the format of which every string is a date, or None."""
    if not all(_DATE_START.match(value) for value in values):
        return None
    formats = (format for format in _FORMATS if not parsed_dates(values, format).isna().any())
    return next(formats, None)


def is_yes_or_no(value: Any) -> bool:
    """Whether a value is one of yes, no, true, false, 1 and 0.

    >>> is_yes_or_no("Yes"), is_yes_or_no(False), is_yes_or_no(2)
    (True, True, False)
    """
    return str(value).strip().lower() in _YES or value in (0, 1)


def parsed_dates(values: np.ndarray, format: str) -> Any:
    """Return strings of a format as moments; those that are no dates are NaT."""
    import pandas as pd

    return pd.to_datetime(
        pd.Index(values, dtype=object), format=format, errors="coerce", utc=True
    ).tz_convert(None)


def _seconds(moments: Any) -> np.ndarray:
    seconds = moments.as_unit("s").asi8.astype(np.float64)
    seconds[np.asarray(moments.isna())] = np.nan
    return seconds


def _shown(format: str | None) -> str:
    return "2024-12-31" if format in (None, "ISO8601") else str(format)


def _refuse(wrong: np.ndarray, words: Words, column: pd.Series, expected: str) -> None:
    """Raise an error about the first row whose value is wrong."""
    rows = np.flatnonzero(np.append(wrong, False)[words.codes])
    if len(rows):
        value = words.values[words.codes[rows[0]]]
        raise InputError(
            f"row {rows[0]} of the column {column.name!r} is {value[:40]!r}, which is not "
            f"{expected}: correct it, leave it blank, or give the column another kind"
        )


def _as_numbers(values: np.ndarray) -> np.ndarray:
    import pandas as pd

    numbers = pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")
    return numbers.to_numpy(dtype=np.float64, na_value=np.nan)


def _word(value: Any) -> str | None:
    """The string of a value; None for blanks.

    A number has one string, whether it is written 7, 7.0 or "07": files, tables and requests
    differ in that.
    """
    if isinstance(value, datetime.datetime | datetime.date):
        return value.isoformat()
    word = str(value).strip()
    if _NUMBER.fullmatch(word) and abs(number := float(word)) < _LARGEST_EXACT:
        return str(int(number)) if number.is_integer() else str(number)
    return word or None


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_category(dtype: Any) -> bool:
    import pandas as pd

    return isinstance(dtype, pd.CategoricalDtype)


def _period_type() -> type:
    import pandas as pd

    return pd.PeriodDtype

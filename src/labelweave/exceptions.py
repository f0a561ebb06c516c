"""The errors that labelweave raises on purpose, each carrying one clear sentence."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from os import PathLike
from types import ModuleType

__all__ = [
    "DataFileError",
    "DatasetUnavailableError",
    "InputError",
    "LabelweaveError",
    "LabelweaveWarning",
    "MissingExtraError",
    "ModelFolderError",
    "in_one_line",
    "require",
]


class LabelweaveError(Exception):
    """Base of every error that labelweave raises on purpose."""


class LabelweaveWarning(UserWarning):
    """Something was decided for the caller that they may want to know about."""


class NewValuesWarning(LabelweaveWarning):
    """A column has values that no training row had; `column` and `values` say which."""

    def __init__(self, column: str, values: Sequence[str]) -> None:
        self.column, self.values = column, values
        shown = ", ".join(repr(value[:40]) for value in values[:3])
        number = "a value" if len(values) == 1 else f"{len(values):,} values"
        super().__init__(f"the column {column!r} has {number} that no training row had ({shown})")


class InputError(LabelweaveError, ValueError):
    """An argument, a matrix or a file does not hold what it should.

    `parameter` is the name of the argument that is wrong or would help, where there is one, or
    several names: the command line names its own options for them.
    """

    def __init__(self, message: str, *, parameter: str | Sequence[str] = ()) -> None:
        self.parameters = (parameter,) if isinstance(parameter, str) else tuple(parameter)
        super().__init__(message)


class DataFileError(InputError):
    """A data file cannot be read; names the file and, where known, the line."""

    def __init__(
        self,
        message: str,
        *,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        parameter: str | Sequence[str] = (),
    ) -> None:
        self.path = None if path is None else str(path)
        self.line = line
        self.message = message
        where = "" if path is None else f"{path}: " if line is None else f"{path}, line {line}: "
        super().__init__(where + message, parameter=parameter)


class DatasetUnavailableError(LabelweaveError, FileNotFoundError):
    """A named data set is neither on this machine nor to be had from its source."""


class ModelFolderError(LabelweaveError, ValueError):
    """A model folder is damaged, foreign, or written by an incompatible version."""


class MissingExtraError(LabelweaveError, ImportError):
    """An optional dependency is needed and not installed."""


def in_one_line(error: Exception) -> str:
    r"""Kind and message of an error of another library, for a sentence of ours.

    >>> in_one_line(ValueError("a long\n  story"))
    'ValueError: a long story'
    """
    message = " ".join(str(error).split())
    shown = message if len(message) <= 300 else f"{message[:300]}..."
    return f"{type(error).__name__}: {shown}"


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or say which extra brings it.

    >>> require("math", "formats").pi > 3
    True
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"{module.partition('.')[0]} is needed for this: pip install 'labelweave[{extra}]'"
        ) from error

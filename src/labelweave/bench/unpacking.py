"""A file of cells, as :mod:`labelweave.bench.packing` writes it, back into records."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, cast

from labelweave.bench.cells import cell_name
from labelweave.bench.packing import COLUMNS, ERROR, FORMAT, MEMORY, NUMBERS, SECONDS, SHARED
from labelweave.bench.records import SCHEMA, Record
from labelweave.bench.suite import Suite
from labelweave.exceptions import DataFileError

__all__ = ["Packed", "unpack"]

_DEFINITION = "suite definition"
_LISTS = (*NUMBERS, "warnings")
_DICTS = ("dataset_facts", "machine", "versions")  # and all that end in settings
_MORE = {"warnings": str, "error": dict, "history": dict, "artifacts": dict}


@dataclass(frozen=True)
class Packed:
    """What a file of cells holds.

    Attributes
    ----------
    records : list of dict
    names : list of str
        Suites that the cells are of.
    suites : list of Suite
        Those of them that the package does not have.
    """

    records: list[Record]
    names: list[str]
    suites: list[Suite]


class _LineError(Exception):
    """What is wrong with a line."""


def unpack(path: str | PathLike[str]) -> Packed:
    """What a file of cells holds; a mistake in it is told with its line."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except UnicodeDecodeError:
        raise DataFileError("this is no text in UTF-8", path=path) from None
    tables: dict[str, dict[str, Any]] = {table: {} for table in (*SHARED, _DEFINITION)}
    names: list[str] = []
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        try:
            if number == 1:
                names = _suites_in(_parsed(line) if line.strip() else None)
            elif line.strip():
                stated = _parsed(line)
                if isinstance(stated, list):
                    records.append(_record(stated, tables))
                else:
                    _keep_shared(stated, tables)
        except _LineError as error:
            raise DataFileError(str(error), path=path, line=number) from None
    return Packed(records, names, list(tables[_DEFINITION].values()))


def _parsed(line: str) -> Any:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        return json.loads(line, parse_constant=refuse)
    except ValueError:
        raise _LineError("this is no whole line of JSON") from None


def _suites_in(header: Any) -> list[str]:
    """The suites that the first line names, if this version can read what follows."""
    if not isinstance(header, dict) or header.get("labelweave") != FORMAT:
        raise _LineError("this is no file of cells: `labelweave bench export` writes one")
    if header.get("schema") != SCHEMA or header.get("cell") != list(COLUMNS):
        raise _LineError(
            f"another version of labelweave wrote this file (schema {header.get('schema')}, here "
            f"{SCHEMA}): export the cells again"
        )
    names = header.get("suites")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _LineError("suites must be a list of names")
    return names


def _keep_shared(stated: Any, tables: dict[str, dict[str, Any]]) -> None:
    """Put a value that cells share into its table."""
    if not isinstance(stated, dict) or stated.keys() != {"shared", "key", "value"}:
        raise _LineError("this is neither a cell nor a value that cells share")
    table, key, value = stated["shared"], stated["key"], stated["value"]
    if not isinstance(table, str) or table not in tables or not isinstance(key, str):
        raise _LineError(f"cells share no {table!r}")
    if key in tables[table]:
        raise _LineError(f"{table} {key!r} is there twice")
    if table == _DEFINITION:
        tables[table][key] = _own_suite(value)
        return
    if not isinstance(value, dict) or value.keys() != set(SHARED[table]):
        raise _LineError(f"{table} {key!r} must say {', '.join(SHARED[table])}")
    for name, part in value.items():
        kind: type = list if name in _LISTS else str
        if name in _DICTS or name.endswith("settings"):
            kind = dict
        if not isinstance(part, kind):
            raise _LineError(f"{name} of {table} {key!r} must be a {kind.__name__}")
    tables[table][key] = value


def _own_suite(value: Any) -> Suite:
    try:
        suite = Suite.from_dict(value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _LineError(f"this is no suite ({error})") from None
    if not isinstance(suite.name, str) or set(suite.name) & set("/\\\0") or not suite.name:
        raise _LineError(f"{suite.name!r} cannot be the name of a suite")
    return suite


def _record(cell: Sequence[Any], tables: Mapping[str, Mapping[str, Any]]) -> Record:
    if len(cell) != len(COLUMNS):
        raise _LineError(f"a cell has {len(COLUMNS)} columns, this one {len(cell)}")
    own = dict(zip(COLUMNS, cell, strict=True))
    more = _more(own["more"])
    values: dict[str, Any] = {"warnings": []}
    for table in SHARED:
        if table != "warnings" or "warnings" in more:
            key = more["warnings"] if table == "warnings" else own[table]
            if not isinstance(key, str) or key not in tables[table]:
                raise _LineError(f"no line above this one says what {table} {key!r} is")
            values |= tables[table][key]
    for name, kind in (("identity", str), ("finished", str), ("seed", int)):
        if not isinstance(own[name], kind) or isinstance(own[name], bool):
            raise _LineError(f"{name} must be {'a text' if kind is str else 'a whole number'}")
        values[name] = own[name]
    if not isinstance(own["cuts"], list):  # one for all
        own["cuts"] = [own["cuts"]] * len(values["cuts"])
    for name in NUMBERS:
        values[name] = _numbers(name, values[name], own[name]) if own[name] != [] else {}
    values["memory"] = _numbers("memory", MEMORY, own["memory"]) | {"how": values["memory"]}
    values["seconds"] = _numbers("seconds", SECONDS, own["seconds"])
    values["error"] = more["error"] | {"trace": ""} if "error" in more else None
    values["history"] = more.get("history")
    values["artifacts"] = more.get("artifacts", {})
    values["schema"] = SCHEMA
    values["cell"] = cell_name(
        values["identity"], values["seed"], values["data_checksum"], values["code_version"]
    )
    return cast(Record, {name: values[name] for name in Record.__annotations__})


def _more(stated: Any) -> dict[str, Any]:
    """What few cells have."""
    if not isinstance(stated, dict) or any(
        not isinstance(value, _MORE.get(name, ())) for name, value in stated.items()
    ):
        raise _LineError(f"the last column is an object of {', '.join(_MORE)}, or empty")
    if "error" in stated and stated["error"].keys() != set(ERROR):
        raise _LineError(f"error must say {' and '.join(ERROR)}")
    return stated


def _numbers(what: str, names: Sequence[str], values: Any) -> dict[str, Any]:
    if not isinstance(values, list) or len(values) != len(names):
        raise _LineError(f"{what} must be {len(names)} numbers")
    for value in values:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number and not (value is None and what == "scores"):
            raise _LineError(f"{what} must be numbers, not {value!r}")
    return dict(zip(names, values, strict=True))

"""Files of cells: one line of JSON per cell, with what many cells share written once.

::

    {"labelweave": "bench cells", "schema": 1, "suites": ["cls-2"], "cell": ["suite", "data", ...]}
    {"shared": "data", "key": "scene", "value": {"dataset": "scene", "data_checksum": ...}}
    ["cls-2", "scene", "single label", "CLS", "honest", 0, "2f056a14...", ...]

The first line names the columns of a cell. Lines are sorted, and a key hardly depends on the rest
of the file, so that one more cell is one more line in a diff. The name of a cell is not written,
because it is a hash of the line's content. The name of the machine and the traces of failures are
left out, because they hold local paths. Scores and thresholds have eight digits.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, cast

from labelweave.bench.running.plan import cell_name
from labelweave.bench.storing.records import SCHEMA, Record
from labelweave.bench.suite import Suite
from labelweave.exceptions import DataFileError, InputError

FORMAT = "bench cells"
NUMBERS = ("rows", "scores", "thresholds")
# Tables of shared values, and the fields of a record that each holds. The first field names the
# value if it is a text. Of NUMBERS only the names are shared; of memory, how it was measured.
SHARED = {
    "suite": ("suite", "kind", *NUMBERS),
    "data": ("dataset", "dataset_facts", "data_checksum"),
    "scenario": ("scenario", "scenario_settings"),
    "method": ("method_name", "method", "settings", "code_version"),
    "protocol": ("protocol", "protocol_settings"),
    "environment": ("machine", "versions", "memory"),
    "warnings": ("warnings",),
}
_ORDER = ("suite", "data", "scenario", "method", "protocol", "seed", "identity")
COLUMNS = (*_ORDER, "environment", "finished", "seconds", "memory", *NUMBERS, "more")
SECONDS, MEMORY, ERROR = ("fit", "wall", "cpu"), ("peak", "before"), ("type", "message")
_DIGITS = 8  # of scores and thresholds; tables show four
_DEFINITION = "suite definition"


def pack(
    records: Iterable[Record],
    names: Iterable[str] = (),
    suites: Iterable[Suite] = (),
    *,
    full: bool = False,
) -> str:
    """Write records as the text of a file of cells.

    * `names`: Names of the suites of the cells.
    * `suites`: Those suites that the package does not have.
    * `full`: Also write `history` and `artifacts`, which only plots need.
    """
    kept = list(records)
    shared = [_shared(record) for record in kept]
    keys = {table: _keys(table, shared) for table in SHARED}
    lines: list[Any] = [
        {"labelweave": FORMAT, "schema": SCHEMA, "suites": sorted(names), "cell": COLUMNS}
    ]
    for suite in sorted(suites, key=lambda one: one.name):
        value = _without_folders(suite).to_dict()
        lines.append({"shared": "suite definition", "key": suite.name, "value": value})
    for table in SHARED:
        lines += [
            {"shared": table, "key": key, "value": json.loads(text)}
            for text, key in sorted(keys[table].items(), key=lambda item: item[1])
        ]
    cells = []
    for record, texts in zip(kept, shared, strict=True):
        own = _own(record, full)
        named = {table: keys[table][text] for table, text in texts.items()}
        if "warnings" in named:
            own["more"]["warnings"] = named.pop("warnings")
        cells.append([(own | named)[column] for column in COLUMNS])
    cells.sort(key=lambda cell: cell[: len(_ORDER)])
    return "".join(_json(line) + "\n" for line in (*lines, *cells))


def _shared(record: Record) -> dict[str, str]:
    """Map tables to the values that a cell may share with others, as text."""
    values: dict[str, Any] = dict(record)
    values |= {name: list(values[name]) for name in NUMBERS}
    values["machine"] = {name: v for name, v in record["machine"].items() if name != "host"}
    values["memory"] = record["memory"]["how"]
    return {
        table: _json({name: values[name] for name in fields})
        for table, fields in SHARED.items()
        if table != "warnings" or record["warnings"]
    }


def _keys(table: str, shared: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Map the different values of a table, as text, to the keys by which cells refer to them."""
    texts = {one[table] for one in shared if table in one}
    names = {text: json.loads(text)[SHARED[table][0]] for text in texts}
    if not all(isinstance(name, str) for name in names.values()):
        return {text: _hash(text) for text in texts}
    used = Counter(names.values())
    return {
        text: name if used[name] == 1 else f"{name}~{_hash(text)}" for text, name in names.items()
    }


def _own(record: Record, full: bool) -> dict[str, Any]:
    """Map columns to the values of this cell alone."""
    wanted = cell_name(
        record["identity"], record["seed"], record["data_checksum"], record["code_version"]
    )
    if record["cell"] != wanted:
        raise InputError(f"cell {record['cell']} has other content than its name: run it again")
    values: dict[str, Any] = dict(record)
    error = values["error"]
    more = {
        "error": error and {name: error[name] for name in ERROR},
        "history": record["history"] if full else None,
        "artifacts": record["artifacts"] if full else None,
    }
    thresholds = [_rounded(value) for value in record["thresholds"].values()]
    return {
        **{name: values[name] for name in ("seed", "identity", "finished")},
        "seconds": [values["seconds"][name] for name in SECONDS],
        "memory": [values["memory"][name] for name in MEMORY],
        "rows": list(record["rows"].values()),
        "scores": [_rounded(value) for value in record["scores"].values()],
        "thresholds": thresholds[0] if len(set(thresholds)) == 1 else thresholds,
        "more": {name: value for name, value in more.items() if value},
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _without_folders(suite: Suite) -> Suite:
    """Remove local folders from the paths of a user's own suite."""
    data = (
        replace(one, source=Path(one.source).name) if Path(one.source).is_absolute() else one
        for one in suite.data
    )
    return replace(suite, data=tuple(data))


@dataclass(frozen=True)
class CellFile:
    """The content of a file of cells."""

    records: list[Record]
    names: list[str]  # Names of the suites of the cells
    suites: list[Suite]  # Those suites that the package does not have


class _LineError(Exception):
    """A mistake in a line."""


def unpack(path: str | PathLike[str]) -> CellFile:
    """Read a file of cells; an error names the line of a mistake."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except UnicodeDecodeError:
        raise DataFileError("this is not text in UTF-8", path=path) from None
    tables: dict[str, dict[str, Any]] = {table: {} for table in (*SHARED, _DEFINITION)}
    names: list[str] = []
    records: list[Record] = []
    for number, line in enumerate(lines, start=1):
        try:
            if number == 1:
                names = _suites_in(_parsed(line) if line.strip() else None)
            elif line.strip():
                value = _parsed(line)
                if isinstance(value, list):
                    records.append(_record(value, tables))
                else:
                    _keep_shared(value, tables)
        except _LineError as error:
            raise DataFileError(str(error), path=path, line=number) from None
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            reason = f"this is not a cell of this format ({error})"
            raise DataFileError(reason, path=path, line=number) from None
    return CellFile(records, names, list(tables[_DEFINITION].values()))


def _parsed(line: str) -> Any:
    def refuse(word: str) -> None:
        raise ValueError(word)

    try:
        return json.loads(line, parse_constant=refuse)
    except ValueError:
        raise _LineError("this is not a complete line of JSON") from None


def _suites_in(header: Any) -> list[str]:
    """Read the names of the suites from the first line, and check the version of the file."""
    if not isinstance(header, dict) or header.get("labelweave") != FORMAT:
        raise _LineError("this is not a file of cells: `labelweave bench export` writes one")
    if header.get("schema") != SCHEMA or header.get("cell") != list(COLUMNS):
        raise _LineError(
            f"another version of labelweave wrote this file (schema {header.get('schema')}, here "
            f"{SCHEMA}): export the cells again"
        )
    names = header.get("suites")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _LineError("suites must be a list of names")
    return names


def _keep_shared(value: Any, tables: dict[str, dict[str, Any]]) -> None:
    """Put a shared value into its table."""
    if not isinstance(value, dict) or value.keys() != {"shared", "key", "value"}:
        raise _LineError("this is neither a cell nor a shared value")
    table, key, value = value["shared"], value["key"], value["value"]
    if not isinstance(table, str) or table not in tables or not isinstance(key, str):
        raise _LineError(f"there are no shared values called {table!r}")
    if key in tables[table]:
        raise _LineError(f"{table} {key!r} occurs twice")
    if table == _DEFINITION:
        tables[table][key] = _own_suite(value)
        return
    if not isinstance(value, dict) or value.keys() != set(SHARED[table]):
        raise _LineError(f"{table} {key!r} must have {', '.join(SHARED[table])}")
    tables[table][key] = value


def _own_suite(value: Any) -> Suite:
    try:
        suite = Suite.from_dict(value)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _LineError(f"this is not a suite ({error})") from None
    if not isinstance(suite.name, str) or set(suite.name) & set("/\\\0") or not suite.name:
        raise _LineError(f"{suite.name!r} cannot be the name of a suite")
    return suite


def _record(cell: Sequence[Any], tables: Mapping[str, Mapping[str, Any]]) -> Record:
    if len(cell) != len(COLUMNS):
        raise _LineError(f"a cell has {len(COLUMNS)} columns, this one {len(cell)}")
    own = dict(zip(COLUMNS, cell, strict=True))
    more = own["more"]
    values: dict[str, Any] = {"warnings": []}
    for table in SHARED:
        if table != "warnings" or "warnings" in more:
            key = more["warnings"] if table == "warnings" else own[table]
            if not isinstance(key, str) or key not in tables[table]:
                raise _LineError(f"no line above this one defines {table} {key!r}")
            values |= tables[table][key]
    values |= {name: own[name] for name in ("identity", "finished", "seed")}
    if not isinstance(own["thresholds"], list):  # one for all
        own["thresholds"] = [own["thresholds"]] * len(values["thresholds"])
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


def _numbers(what: str, names: Sequence[str], values: Any) -> dict[str, Any]:
    if not isinstance(values, list) or len(values) != len(names):
        raise _LineError(f"{what} must be {len(names)} numbers")
    for value in values:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number and not (value is None and what == "scores"):
            raise _LineError(f"{what} must be numbers, not {value!r}")
    return dict(zip(names, values, strict=True))

"""Records as lines of JSON: one line a cell, what many cells share said once.

::

    {"labelweave": "bench cells", "schema": 1, "suites": ["cls-2"], "cell": ["suite", "data", ...]}
    {"shared": "data", "key": "scene", "value": {"dataset": "scene", "data_checksum": ...}}
    ["cls-2", "scene", "single label", "CLS", "honest", 0, "2f056a14...", ...]

The first line says what the columns of a cell are called. Lines are sorted and a key hardly
depends on what else is in the file, so that one more cell is one more line. The name of a cell is
left out: it is a hash of what the line says. Also left out are the name of the machine and the
traces of failures, which hold paths of it. Scores and cuts have eight digits.
:mod:`labelweave.bench.unpacking` reads the lines back.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from labelweave.bench.cells import cell_name
from labelweave.bench.records import SCHEMA, Record
from labelweave.bench.suite import Suite
from labelweave.exceptions import InputError

__all__ = ["COLUMNS", "ERROR", "FORMAT", "MEMORY", "NUMBERS", "SECONDS", "SHARED", "pack"]

FORMAT = "bench cells"
NUMBERS = ("rows", "scores", "cuts")
# Table of shared values to fields of a record; the first names the value if it is a text. Of
# NUMBERS the names are shared, of memory how it is measured.
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
_DIGITS = 8  # of scores and cuts; tables show four


def pack(
    records: Iterable[Record],
    names: Iterable[str] = (),
    suites: Iterable[Suite] = (),
    *,
    full: bool = False,
) -> str:
    """The text of a file of cells.

    Parameters
    ----------
    records : iterable of dict
    names : iterable of str
        Suites that the cells are of.
    suites : iterable of Suite
        Those of them that the package does not have.
    full : bool, default=False
        Also `history` and `artifacts`, which only plots need.
    """
    kept = list(records)
    shared = [_shared(record) for record in kept]
    _lend_names(kept, shared)
    keys = {table: _keys(table, shared) for table in SHARED}
    lines: list[Any] = [
        {"labelweave": FORMAT, "schema": SCHEMA, "suites": sorted(names), "cell": COLUMNS}
    ]
    for suite in sorted(suites, key=lambda one: one.name):
        stated = _without_folders(suite).to_dict()
        lines.append({"shared": "suite definition", "key": suite.name, "value": stated})
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
    """Table to what a cell may share with others, as text."""
    values: dict[str, Any] = dict(record)
    values |= {name: list(values[name]) for name in NUMBERS}
    values["machine"] = {name: v for name, v in record["machine"].items() if name != "host"}
    values["memory"] = record["memory"]["how"]
    return {
        table: _json({name: values[name] for name in fields})
        for table, fields in SHARED.items()
        if table != "warnings" or record["warnings"]
    }


def _lend_names(records: Sequence[Record], shared: Sequence[dict[str, str]]) -> None:
    """A failed cell has no numbers: it shares the names of those of its suite all the same."""
    named: dict[tuple[str, str], str] = {}
    for record, texts in zip(records, shared, strict=True):
        if record["scores"]:
            suite = record["suite"], record["kind"]
            named[suite] = min(texts["suite"], named.get(suite, texts["suite"]))
    for record, texts in zip(records, shared, strict=True):
        if not any((record["rows"], record["scores"], record["cuts"])):
            suite = record["suite"], record["kind"]
            texts["suite"] = named.get(suite, texts["suite"])


def _keys(table: str, shared: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """The different values of a table, as text, and how cells refer to them."""
    texts = {one[table] for one in shared if table in one}
    names = {text: json.loads(text)[SHARED[table][0]] for text in texts}
    if not all(isinstance(name, str) for name in names.values()):
        return {text: _hash(text) for text in texts}
    used = Counter(names.values())
    return {
        text: name if used[name] == 1 else f"{name}~{_hash(text)}" for text, name in names.items()
    }


def _own(record: Record, full: bool) -> dict[str, Any]:
    """Column to what only this cell says."""
    wanted = cell_name(
        record["identity"], record["seed"], record["data_checksum"], record["code_version"]
    )
    if record["cell"] != wanted:
        raise InputError(f"cell {record['cell']} is not named by what it holds: run it again")
    values: dict[str, Any] = dict(record)
    error = values["error"]
    more = {
        "error": error and {name: error[name] for name in ERROR},
        "history": record["history"] if full else None,
        "artifacts": record["artifacts"] if full else None,
    }
    cuts = [_rounded(value) for value in record["cuts"].values()]
    return {
        **{name: values[name] for name in ("seed", "identity", "finished")},
        "seconds": [values["seconds"][name] for name in SECONDS],
        "memory": [values["memory"][name] for name in MEMORY],
        "rows": list(record["rows"].values()),
        "scores": [_rounded(value) for value in record["scores"].values()],
        "cuts": cuts[0] if len(set(cuts)) == 1 else cuts,
        "more": {name: value for name, value in more.items() if value},
    }


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def _without_folders(suite: Suite) -> Suite:
    """A suite of one's own names its files by full path; another machine has other folders."""
    data = (
        replace(one, source=Path(one.source).name) if Path(one.source).is_absolute() else one
        for one in suite.data
    )
    return replace(suite, data=tuple(data))

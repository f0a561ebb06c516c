"""Folders of results: one file per cell, written atomically and named by a hash.

::

    results/
      store.json          what this folder is
      cells/<name>.json   one finished cell, as in labelweave.bench.storing.records
      claims/<name>       a cell that a process works on
      suites/<name>.json  the suites that were run
      index.json          a cache: all cells in one file, without what only plots need
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any, cast

from labelweave.bench.storing.records import HEAVY_FIELDS, SCHEMA, Record
from labelweave.bench.suite import Suite
from labelweave.exceptions import DataFileError, InputError
from labelweave.files import atomic_write_text

__all__ = ["Store", "read_results"]

_LONG_AGO = 3600.0  # seconds
_INDEX_WORTH = 50  # number of new cells after which the index is written again


def read_results(folder: str | PathLike[str], *, full: bool = True) -> list[Record]:
    """Read the finished cells of a folder of results, including failed ones (with `error`).

    Parameters
    ----------
    folder : path
        A folder that `labelweave bench run` wrote.
    full : bool, default=True
        If False, `history` and `artifacts` are None, and thousands of cells are read quickly
        from one file.

    Returns
    -------
    list of dict
        See :class:`labelweave.bench.storing.records.Record`.
    """
    store = Store(folder)
    if not store.exists():
        raise InputError(f"{folder} is not a folder of results: `labelweave bench run` makes one")
    return store.records() if full else store.summaries()


class Store:
    """A folder of results.

    Parameters
    ----------
    folder : path
        Created by :meth:`create`.
    """

    def __init__(self, folder: str | PathLike[str]) -> None:
        self.folder = Path(folder)
        self.cells = self.folder / "cells"
        self.claims = self.folder / "claims"

    # -- the folder --------------------------------------------------------------------

    def exists(self) -> bool:
        """Return whether this is a folder of results."""
        return self._facts_file.is_file()

    def create(self) -> str:
        """Create the folder if it does not exist; return the id by which workers recognise it."""
        is_ours = self.exists() or self.cells.is_dir()  # the latter: killed while making it
        if not is_ours and self.folder.is_dir() and any(self.folder.iterdir()):
            raise InputError(f"{self.folder} holds other files: give another --out")
        for part in (self.cells, self.claims):
            part.mkdir(parents=True, exist_ok=True)
        self._sweep()
        if not self.exists():
            facts = {"schema": SCHEMA, "id": uuid.uuid4().hex}
            self._name_folder(json.dumps(facts))
        return self.id()

    def _name_folder(self, facts: str) -> None:
        """Write the id of this folder, unless another process was quicker: the first id stays."""
        draft = self.folder / f".store-{uuid.uuid4().hex}"
        draft.write_text(facts, encoding="utf-8")
        try:
            os.link(draft, self._facts_file)
        except FileExistsError:
            pass
        except OSError:  # a disk without hard links
            atomic_write_text(self._facts_file, facts)
        finally:
            draft.unlink()

    def _sweep(self) -> None:
        """Remove temporary files of processes that were killed long ago."""
        for path in self.cells.glob(".*.json"):
            with suppress(OSError):
                if time.time() - path.stat().st_mtime > _LONG_AGO:
                    path.unlink()

    def id(self) -> str:
        """Return the id of the folder; "" if it has none."""
        try:
            facts = json.loads(self._facts_file.read_text())
        except (OSError, ValueError):
            return ""
        if facts.get("schema") != SCHEMA:
            raise InputError(
                f"{self.folder} was written by another version of labelweave "
                f"(schema {facts.get('schema')}, here {SCHEMA}): give another --out"
            )
        return facts["id"]

    @property
    def _facts_file(self) -> Path:
        return self.folder / "store.json"

    # -- cells -------------------------------------------------------------------------

    def path(self, name: str) -> Path:
        """Return the file of a cell's record."""
        return self.cells / f"{name}.json"

    def claim_path(self, name: str) -> Path:
        """Return the file by which a process claims a cell."""
        return self.claims / name

    def names(self) -> set[str]:
        """Return the names of the finished cells."""
        with suppress(FileNotFoundError):
            return {entry.name[:-5] for entry in _json_files(self.cells)}
        return set()

    def write(self, record: Record) -> None:
        """Write a record atomically."""
        atomic_write_text(self.path(record["cell"]), json.dumps(record, allow_nan=False))

    def read(self, name: str) -> Record:
        """Read the record of a cell."""
        path = self.path(name)
        try:
            return cast(Record, json.loads(path.read_bytes()))
        except ValueError:
            raise DataFileError("this is not a finished cell: delete it", path=path) from None

    def records(self, names: Iterable[str] | None = None) -> list[Record]:
        """Read complete records, by name."""
        return [self.read(name) for name in sorted(self.names() if names is None else names)]

    def summaries(self) -> list[Record]:
        """Read all records without what only plots need, from the index where it is current."""
        index = self._read_index()
        stamps = {entry.name[:-5]: _stamp(entry) for entry in _json_files(self.cells)}
        fresh = {name for name, stamp in stamps.items() if index.get(name, [None])[0] != stamp}
        for name in fresh:
            record = {**self.read(name)} | dict.fromkeys(HEAVY_FIELDS)
            index[name] = [stamps[name], record]
        if len(fresh) >= _INDEX_WORTH or len(index) - len(stamps) >= _INDEX_WORTH:
            self._write_index({name: index[name] for name in stamps})
        return [cast(Record, index[name][1]) for name in sorted(stamps)]

    def _read_index(self) -> dict[str, Any]:
        """Map names to stamp and record; equal values of records are stored once."""
        try:
            index = json.loads((self.folder / "index.json").read_bytes())
            if index["schema"] != SCHEMA:
                return {}
            fields, tables = list(index["tables"]), list(index["tables"].values())
            cells: dict[str, Any] = {}
            for name, stamp, places in index["cells"]:
                values = [table[i] for table, i in zip(tables, places, strict=True)]
                cells[name] = [stamp, dict(zip(fields, values, strict=True))]
        except (OSError, ValueError, KeyError, TypeError, IndexError):
            return {}  # a cache: a broken one is made again
        return cells

    def _write_index(self, cells: dict[str, Any]) -> None:
        """Write each field as a table of its different values: many cells share most of them."""
        tables: dict[str, dict[str, int]] = {}
        rows = []
        for name, (stamp, record) in cells.items():
            places = []
            for key in Record.__annotations__:
                table = tables.setdefault(key, {})
                places.append(table.setdefault(json.dumps(record[key]), len(table)))
            rows.append([name, stamp, places])
        values = {key: [json.loads(text) for text in table] for key, table in tables.items()}
        text = json.dumps({"schema": SCHEMA, "tables": values, "cells": rows})
        with suppress(OSError):  # a read-only folder can be compared too
            atomic_write_text(self.folder / "index.json", text)

    # -- suites ------------------------------------------------------------------------

    def write_suite(self, suite: Suite) -> None:
        """Write a suite, so that it can be compared later."""
        text = json.dumps(suite.to_dict(), indent=1)
        atomic_write_text(self.folder / "suites" / f"{suite.name}.json", text)

    def suites(self) -> list[Suite]:
        """Read the suites that were run into this folder, by name."""
        from labelweave.bench.suite import load_suite

        return [load_suite(path) for path in sorted((self.folder / "suites").glob("*.json"))]


def _json_files(folder: Path) -> Iterator[os.DirEntry[str]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(".json") and not entry.name.startswith("."):
                yield entry


def _stamp(entry: os.DirEntry[str]) -> list[int]:
    """Return time and size of a file, which change when it is replaced."""
    facts = entry.stat()
    return [facts.st_mtime_ns, facts.st_size]

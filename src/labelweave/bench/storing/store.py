"""Folders of results: one file per cell, written atomically and named by a hash.

::

    results/
      store.json          what this folder is
      cells/<name>.json   one finished cell, as in labelweave.bench.storing.records
      claims/<name>       a cell that a process works on
      suites/<name>.json  the suites that were run
"""

from __future__ import annotations

import json
import os
import time
import uuid
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


def read_results(folder: str | PathLike[str], *, full: bool = True) -> list[Record]:
    """Read the finished cells of a folder of results, including failed ones (with `error`).

    Parameters
    ----------
    folder : path
        A folder that `labelweave bench run` wrote.
    full : bool, default=True
        If False, `history` and `artifacts`, which only plots need, are None.

    Returns
    -------
    list of dict
        See :class:`labelweave.bench.storing.records.Record`.
    """
    store = Store(folder)
    if not store.exists():
        raise InputError(f"{folder} is not a folder of results: `labelweave bench run` makes one")
    return store.records(full=full)


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
        return {path.stem for path in self.cells.glob("[!.]*.json")}

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

    def records(self, *, full: bool = True) -> list[Record]:
        """Read all records; without `full`, `history` and `artifacts` are None."""
        light: Any = {} if full else dict.fromkeys(HEAVY_FIELDS)
        return [cast(Record, {**self.read(name), **light}) for name in sorted(self.names())]

    # -- suites ------------------------------------------------------------------------

    def write_suite(self, suite: Suite) -> None:
        """Write a suite, so that it can be compared later."""
        text = json.dumps(suite.to_dict(), indent=1)
        atomic_write_text(self.folder / "suites" / f"{suite.name}.json", text)

    def suites(self) -> list[Suite]:
        """Read the suites that were run into this folder, by name."""
        from labelweave.bench.suite import load_suite

        return [load_suite(path) for path in sorted((self.folder / "suites").glob("*.json"))]

"""Export a folder of results to one small file, and import it again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from typing import NamedTuple

from labelweave.bench.comparing.comparison import latest, standing
from labelweave.bench.running.plan import identities_of
from labelweave.bench.storing.cell_file import pack, unpack
from labelweave.bench.storing.records import Record
from labelweave.bench.storing.store import Store, read_results
from labelweave.bench.suite import Suite, list_suites
from labelweave.exceptions import InputError
from labelweave.files import atomic_write_text


class Exported(NamedTuple):
    """Number of cells written, their suites, bytes, and older cells that were left out."""

    n_cells: int
    suites: tuple[str, ...]
    n_bytes: int
    n_older: int


class Imported(NamedTuple):
    """Number of cells read, and number written because they were new or newer."""

    n_read: int
    n_written: int


def export_cells(
    folder: str | PathLike[str],
    path: str | PathLike[str],
    suites: Sequence[Suite] = (),
    *,
    full: bool = False,
) -> Exported:
    """Write the newest record of each cell to one file, atomically.

    * `folder`: A folder of results; it is not changed.
    * `path`: File to write; see :mod:`labelweave.bench.storing.cell_file`.
    * `suites`: Only the cells of these suites; default: all cells.
    * `full`: Also write histories and artifacts, which only plots need.
    """
    records = read_results(folder)
    wanted = suites or Store(folder).suites()
    if suites:
        asked = {suite.name: identities_of(suite) for suite in suites}
        held = {record["identity"] for record in records}
        if empty := [name for name, identities in asked.items() if not identities & held]:
            raise InputError(f"{folder} holds no finished cell of {', '.join(empty)}")
        records = [one for one in records if any(one["identity"] in i for i in asked.values())]
    if not records:
        raise InputError(f"{folder} holds no finished cell yet: there is nothing to export")
    newest, _ = latest(records)
    shipped = {suite.name for suite in list_suites()}
    names = {suite.name for suite in wanted}
    own = [suite for suite in wanted if suite.name not in shipped]
    text = pack(newest, names, own, full=full)
    atomic_write_text(path, text)
    n_older = len(records) - len(newest)
    return Exported(len(newest), tuple(sorted(names)), len(text.encode()), n_older)


def import_cells(paths: Iterable[str | PathLike[str]], folder: str | PathLike[str]) -> Imported:
    """Put the cells of exported files into a folder of results.

    All files are read before anything is written. An existing cell is replaced only by a newer
    one, or by one with scores if it had failed.

    * `paths`: Files that :func:`export_cells` wrote.
    * `folder`: Folder of results, created if it does not exist.
    """
    files = [unpack(path) for path in paths]
    cells: dict[str, Record] = {}
    for record in (record for one in files for record in one.records):
        held = cells.setdefault(record["cell"], record)
        if standing(record) > standing(held):
            cells[record["cell"]] = record
    store = Store(folder)
    store.create()
    there = store.names()
    new = [
        record
        for name, record in cells.items()
        if name not in there or standing(record) > standing(store.read(name))
    ]
    for record in new:
        store.write(record)
    asked = {name for one in files for name in one.names}
    own = {suite.name: suite for one in files for suite in one.suites}
    shipped = {suite.name: suite for suite in list_suites() if suite.name in asked}
    for name in (own | shipped).keys() - {suite.name for suite in store.suites()}:
        store.write_suite((own | shipped)[name])
    return Imported(len(cells), len(new))

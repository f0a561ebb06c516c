"""Objects of a JSON file as a table: one column per field."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any, NamedTuple

from labelweave.data.compressed_files import FilePath
from labelweave.data.readers._table.cells import parse_numbers
from labelweave.data.readers._table.csv_parquet import TableRows

__all__ = ["Record", "RecordTable"]


class Record(NamedTuple):
    """One object of a file, and where it is."""

    path: FilePath
    line: int
    values: dict[str, Any]


class RecordTable:
    """A table of records.

    Parameters
    ----------
    path : path-like
    columns : mapping of str to callable
        For each column the function that gives its cell in a record.
    records : callable
        Gives the records, each time that it is called.
    chunk_rows : int or None
        How many records make a chunk; None for all of a file. A column of nothing but numbers in a
        chunk is an array.
    """

    decimal = "."
    index_column: int | None = None
    null_is_unknown = True

    def __init__(
        self,
        path: FilePath,
        columns: Mapping[str, Callable[[Record], Any]],
        records: Callable[[], Iterable[Record]],
        chunk_rows: int | None,
    ) -> None:
        self.path = path
        self.names = list(columns)
        self._cells = list(columns.values())
        self._records = records
        self._chunk_rows = chunk_rows

    def chunks(
        self, numbers: Collection[int] = (), texts: Collection[int] | None = None
    ) -> Iterator[TableRows]:
        """Read all rows; the columns of `texts` are never arrays."""
        for path, records in groupby(self._records(), key=lambda record: record.path):
            while chunk := list(islice(records, self._chunk_rows)):
                columns: list[Any] = [[cell(record) for record in chunk] for cell in self._cells]
                for j in set(range(len(columns))) - set(texts or ()):
                    if j in numbers or _are_numbers(columns[j]):
                        values, wrong = parse_numbers(columns[j])
                        columns[j] = values if wrong is None else columns[j]
                yield TableRows(columns, [record.line for record in chunk], path)


def _are_numbers(cells: list[Any]) -> bool:
    types = {type(cell) for cell in cells if cell is not None}
    return bool(types) and types <= {int, float}

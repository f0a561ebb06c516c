"""Opening tables: one file of any kind, or several with the same columns."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Protocol

from labelweave.data.compressed_files import FilePath, open_binary, uncompressed_name
from labelweave.data.readers._table.csv_parquet import CsvTable, ParquetTable, TableRows
from labelweave.data.several_files import SeveralFiles
from labelweave.data.text_encodings import EncodedPath
from labelweave.exceptions import DataFileError

__all__ = ["OpenTable", "open_table"]


class OpenTable(Protocol):
    """A table: the names of its columns, and its rows, which can be read repeatedly.

    `decimal` is the decimal sign of numbers in strings; `index_column` is the position of the index
    that pandas writes beside the columns, where there is one. With `null_is_unknown` the labels of
    a row whose list is null are unknown; else it has none.
    """

    path: FilePath
    names: list[str]
    decimal: str
    index_column: int | None
    null_is_unknown: bool

    def chunks(
        self, numbers: Collection[int] = (), texts: Collection[int] | None = None
    ) -> Iterator[TableRows]: ...


def open_table(path: FilePath, *, sheet: str | int | None = None, **csv_options: Any) -> OpenTable:
    """Open a table; the ending and the first bytes decide what it is.

    `sheet` is that of :class:`~labelweave.data.readers._table.excel.ExcelTable`, and `csv_options`
    are those of :class:`CsvTable`.
    """
    if isinstance(path, SeveralFiles):
        return _SeveralTables(path, sheet=sheet, **csv_options)
    name = uncompressed_name(path).lower()
    with open_binary(path.path if isinstance(path, EncodedPath) else path) as file:
        start = file.read(4)
    is_parquet = name.endswith((".parquet", ".pq")) or start == b"PAR1"
    is_excel = name.endswith((".xlsx", ".xlsm")) or start == b"PK\x03\x04"
    if sheet is not None and not is_excel:
        raise DataFileError("only an Excel file has sheets: leave out sheet=", path=path)
    if (is_parquet or is_excel) and isinstance(path, EncodedPath):
        raise DataFileError("only text files have an encoding: leave out encoding=", path=path)
    if is_parquet:
        return ParquetTable(path)
    if is_excel:
        from labelweave.data.readers._table.excel import ExcelTable

        return ExcelTable(path, sheet)
    return CsvTable(path, **csv_options)


class _SeveralTables:
    """Tables with the same columns, in any order, whose rows follow each other."""

    null_is_unknown = False

    def __init__(self, source: SeveralFiles, **options: Any) -> None:
        self.path: FilePath = source
        self._tables = [open_table(file, **options) for file in source.files]
        first = self._tables[0]
        self.decimal, self.index_column = first.decimal, first.index_column
        partitions = source.partitions or ({},) * len(self._tables)
        added = [key for key in partitions[0] if key not in first.names]
        self.names = [*first.names, *added]
        for table, partition in zip(self._tables, partitions, strict=True):
            _check_same_columns(first, [*first.names, *partitions[0]], table, partition)
        self._added: list[list[str | None]] = [[part[key] for key in added] for part in partitions]

    def chunks(
        self, numbers: Collection[int] = (), texts: Collection[int] | None = None
    ) -> Iterator[TableRows]:
        own = self._tables[0].names
        for table, added in zip(self._tables, self._added, strict=True):
            position = {name: j for j, name in enumerate(table.names)}
            places = [position[name] for name in own]

            def here(columns: Collection[int], places: Sequence[int] = places) -> list[int]:
                return [places[j] for j in columns if j < len(places)]

            for rows in table.chunks(here(numbers), None if texts is None else here(texts)):
                columns = [rows.columns[j] for j in places]
                columns += [[value] * len(rows.lines) for value in added]
                yield TableRows(columns, rows.lines, rows.path or table.path)


def _check_same_columns(
    first: OpenTable, expected: Sequence[str], table: OpenTable, partition: Mapping[str, Any]
) -> None:
    names = [*table.names, *partition]
    missing = next((name for name in expected if name not in names), None)
    if missing is not None:
        what = f"the column {missing!r} of {first.path} is missing"
    elif (further := next((name for name in names if name not in expected), None)) is not None:
        what = f"the column {further!r} is not in {first.path}"
    elif len(names) != len(expected):
        what = f"there are {len(names)} columns, but {len(expected)} in {first.path}"
    else:
        return
    raise DataFileError(
        f"{what}: files that are read together must have the same columns", path=table.path
    )

"""Reading CSV, TSV and Parquet files as chunks of columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from labelweave.data.compressed_files import (
    BYTE_ORDER_MARK,
    MAX_LINE_BYTES,
    FilePath,
    check_expansion,
    decode,
    iter_lines,
    open_binary,
    read_line,
    read_small_file,
    uncompressed_name,
)
from labelweave.data.readers._table.cells import is_number
from labelweave.data.readers._table.csv_blocks import SEPARATORS, Block, Dialect
from labelweave.exceptions import DataFileError, require

CHUNK_ROWS = 2048
_FIRST_BYTES = 2**18  # of the first chunk, and twice as many until it has its rows
_SAMPLE_BYTES = 2**21  # of the first chunk at most, unless one row is longer
INDEX_NAME = "Unnamed: 0"
"""What pandas calls the column of an index without a name when it reads it again."""

_INDEX_NAMES = (INDEX_NAME, "__index_level_0__")
_DECODED_ROWS = 64  # of a Parquet file, at once: a long text may be stored once for all rows
_DECODED_BYTES = 2**28
_TEXT_EXPANSION = 20  # texts seldom compress further


@dataclass
class TableRows:
    """Consecutive rows, by column; `lines` are their line numbers (row numbers in Parquet).

    An array of numbers may have been made of words such as "yes", unless it is one of `written`.
    """

    columns: list[Sequence[Any]]
    lines: Sequence[int]
    path: FilePath | None = None  # the file, where the table consists of several
    written: Collection[int] = ()


class CsvTable:
    """Values separated by commas, semicolons, tabs or bars.

    The separator is the one that occurs most often in the first line. A first line with an empty,
    repeated or numeric cell (or a list of numbers) is not a header, and the columns are then called
    column_1, column_2, ... But a first line of words with an empty or repeated cell above a line
    with numbers is a broken header, which is refused, unless only the first cell is empty: this is
    the index that pandas writes (`index_column`). Tab-separated files have no quotes by
    default, as their standard says.
    """

    null_is_unknown = False

    def __init__(
        self,
        path: FilePath,
        *,
        separator: str | None = None,
        header: bool | None = None,
        quotes: bool | None = None,
        decimal: str = ".",
    ) -> None:
        self.path = path
        self.decimal = decimal
        if decimal not in (".", ","):
            raise DataFileError(
                f"decimal= must be '.' or ',', not {decimal!r}", path=path, parameter="decimal"
            )
        self._first: _FirstChunk | None = None
        first = next((line for _, line in iter_lines(path) if line.strip()), None)
        if first is None:
            raise DataFileError("the file is empty", path=path)
        tab = uncompressed_name(path).lower().endswith((".tsv", ".tab"))
        possible = [sign for sign in ",;\t|" if sign != decimal]
        self.separator = separator or ("\t" if tab else max(possible, key=first.count))
        if len(self.separator) != 1:
            raise DataFileError(f"the separator {separator!r} is not one character", path=path)
        if self.separator == decimal or (
            separator is None and decimal in first and self.separator not in first
        ):
            raise DataFileError(
                f"{decimal!r} cannot be both the decimal sign and the separator of cells: say with "
                "separator= what separates them",
                path=path,
                parameter=("decimal", "separator"),
            )
        self.quotes = (self.separator != "\t") if quotes is None else quotes
        with open_binary(path) as file:
            head = list(islice(self._rows(_lines(file, path)), 2))
        if not head:
            raise DataFileError("the file has no rows", path=path)
        cells, line = head[0]
        self.index_column: int | None = None
        if header is not False and _is_index_header(*(row for row, _ in head)):
            self.index_column, cells = 0, [INDEX_NAME, *cells[1:]]
        self.has_header = _looks_like_header(cells) if header is None else header
        if header is None and not self.has_header and _is_broken_header(*(row for row, _ in head)):
            raise DataFileError(
                f"the header {_header_fault(cells)}: correct it, or use header=False if the first "
                "line is not a header",
                path=path,
                line=line,
            )
        self.names = (
            [cell.strip() for cell in cells]
            if self.has_header
            else [f"column_{j}" for j in range(1, len(cells) + 1)]
        )
        self.first_cells = head[-1][0] if len(head) == 2 or not self.has_header else []

    def chunks(
        self, numbers: Collection[int] = (), texts: Collection[int] | None = None
    ) -> Iterator[TableRows]:
        """Read all rows; the first chunk has at most CHUNK_ROWS.

        The columns of `numbers` are arrays wherever all their cells are numbers or missing. All
        other columns are sequences of strings; those that are not in `texts`, where it is given,
        may be empty.
        """
        with open_binary(self.path) as file:
            line = 1
            if self.has_header:
                line = next(self._rows(_lines(file, self.path)))[1] + 1
            if self.separator in SEPARATORS:
                yield from self._fast_chunks(file, line, numbers, texts)
            else:
                yield from self._careful_chunks(_lines(file, self.path, line), line)

    def _fast_chunks(
        self, file: BinaryIO, line: int, numbers: Collection[int], texts: Collection[int] | None
    ) -> Iterator[TableRows]:
        """Read rows in blocks, and those of an unusual block carefully."""
        dialect = Dialect(self.separator, self.quotes, self.decimal, len(self.names))
        size = _block_bytes(len(self.names))
        most: int | None = CHUNK_ROWS
        if self._first is not None and self._first.serves(numbers, texts):
            file.read(self._first.n_bytes)
            line += self._first.n_lines
            most = None
            yield self._first.rows
        data, mark = b"", 0
        while True:
            new = file.read(size if most is None else max(len(data), _FIRST_BYTES))
            data = data + new if data else new
            if line == 1 and data.startswith(BYTE_ORDER_MARK):
                data = data.removeprefix(BYTE_ORDER_MARK)
                mark = len(BYTE_ORDER_MARK)
            if not new and data and not data.endswith(b"\n"):
                data += b"\n"
            if not data:
                return
            block = Block(data, dialect, most)
            if most is not None and new and block.n_lines < most and len(data) < _SAMPLE_BYTES:
                continue
            if not block.data or not block.has_usual_quotes():
                # A very long row, or quotes that are not around whole cells: it is then not known
                # where rows end, and all that follow are read carefully.
                data += b"" if data.endswith(b"\n") else read_line(file, self.path, line)
                lines = chain(io.BytesIO(data), _lines(file, self.path, line + data.count(b"\n")))
                yield from self._careful_chunks(lines, line)
                return
            columns = block.parse(numbers, texts)
            if columns is None:
                yield from self._careful_chunks(io.BytesIO(block.data), line)
            else:
                written = set(numbers) - dialect.words
                rows = TableRows(columns, block.lines(line), written=written)
                if most is not None and len(numbers) == len(self.names):
                    self._first = _FirstChunk(rows, mark + len(block.data), block.n_lines)
                yield rows
            line += block.n_lines
            data = data[len(block.data) :]
            most = None

    def _careful_chunks(self, lines: Iterable[bytes], first_line: int) -> Iterator[TableRows]:
        """Read rows one by one; the error message for a wrong one names its line."""
        rows = self._rows(lines, first_line)
        while chunk := list(islice(rows, CHUNK_ROWS)):
            for cells, line in chunk:
                if len(cells) != len(self.names):
                    raise DataFileError(
                        f"the row has {len(cells)} cells, but there are {len(self.names)} columns",
                        path=self.path,
                        line=line,
                    )
            yield TableRows(
                list(zip(*(cells for cells, _ in chunk), strict=True)), [line for _, line in chunk]
            )

    def _rows(self, lines: Iterable[bytes], first_line: int = 1) -> Iterator[tuple[list[str], int]]:
        """Cells and last line number of each row; empty lines are skipped."""
        # The default limit of 128 KiB per cell is too small for long texts.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
        reader = csv.reader(
            (decode(line, self.path, number) for number, line in enumerate(lines, first_line)),
            delimiter=self.separator,
            quoting=csv.QUOTE_MINIMAL if self.quotes else csv.QUOTE_NONE,
            strict=self.quotes,
        )
        before = first_line - 1
        while True:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                raise DataFileError(
                    f"the row cannot be read ({error})",
                    path=self.path,
                    line=before + reader.line_num,
                ) from None
            if cells is None:
                return
            if cells:
                yield cells, before + reader.line_num


def _block_bytes(n_columns: int) -> int:
    """How much is parsed at once; in wide tables every block costs more."""
    return 2**22 + 2**11 * n_columns


@dataclass
class _FirstChunk:
    """The first chunk with all its columns, so that a sample of the rows is not read twice."""

    rows: TableRows
    n_bytes: int
    n_lines: int

    def serves(self, numbers: Collection[int], texts: Collection[int] | None) -> bool:
        """Whether the columns that are wanted as strings are strings here."""
        columns = self.rows.columns
        wanted = set(range(len(columns))) - set(numbers) if texts is None else texts
        return not any(isinstance(columns[j], np.ndarray) for j in wanted)


def _lines(file: BinaryIO, path: FilePath, first: int = 1) -> Iterator[bytes]:
    """The remaining lines of an open file; `first` is the number of the next one."""
    for number in count(first):
        line = read_line(file, path, number)
        if not line:
            return
        yield line


class ParquetTable:
    """A Parquet file, whose columns hold numbers, texts or lists of names."""

    decimal = "."
    null_is_unknown = False

    def __init__(self, path: FilePath) -> None:
        self.path = path
        self._parquet = require("pyarrow.parquet", "formats")
        with self._open() as file:
            self.names = [str(name) for name in file.schema_arrow.names]
            self.index_column = next(
                (j for j, name in enumerate(self.names) if name in _INDEX_NAMES), None
            )
            self._decoded_rows = self._guarded(
                lambda: self._checked_metadata(file.metadata, file.schema_arrow)
            )

    def _open(self) -> Any:
        source: Any = Path(self.path)
        if source.name != uncompressed_name(source):
            source = require("pyarrow", "formats").BufferReader(
                read_small_file(source, limit=2**31)
            )
        elif not source.is_file():
            raise DataFileError("there is no such file", path=self.path)
        return self._guarded(lambda: self._parquet.ParquetFile(source))

    def _guarded(self, action: Any) -> Any:
        try:
            return action()
        except DataFileError:
            raise
        except Exception as error:
            # pyarrow raises its own classes as well as plain OSError, ValueError and KeyError.
            message = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataFileError(
                f"the Parquet file cannot be read ({message})", path=self.path
            ) from None

    def _checked_metadata(self, metadata: Any, schema: Any) -> int:
        """Refuse a table that is far larger than its file; return how many rows to decode at once.

        Repeated values take almost no room in the file: a number that is repeated is counted here,
        before it is decoded, and texts while they are decoded, a few rows at a time. A text takes
        some 64 bytes, however short it is.
        """
        row_bytes = sum(8 if _is_numeric(kind) else 64 for kind in schema.types)
        # Not the metadata of single columns: where it is damaged, pyarrow ends the process.
        n_packed = Path(self.path).stat().st_size
        n_bytes, largest = 0, 0
        for group in map(metadata.row_group, range(metadata.num_row_groups)):
            unpacked = group.total_byte_size
            n_bytes += max(row_bytes * group.num_rows, unpacked)
            if unpacked > _TEXT_EXPANSION * n_packed:
                largest = max(largest, unpacked)
        check_expansion(n_bytes, n_packed, self.path)
        return max(1, min(_DECODED_ROWS, _DECODED_BYTES // max(largest, 1)))

    def chunks(
        self, numbers: Collection[int] = (), texts: Collection[int] | None = None
    ) -> Iterator[TableRows]:
        """Read all rows and columns. The types in the file decide which are arrays."""
        n_packed = Path(self.path).stat().st_size
        with self._open() as file:
            batches = self._guarded(lambda: file.iter_batches(batch_size=self._decoded_rows))
            n_read, n_bytes = 0, 0
            while True:
                decoded: list[Any] = []
                start = n_bytes
                while len(decoded) * self._decoded_rows < CHUNK_ROWS:
                    batch = self._guarded(lambda: _decoded(next(batches, None)))
                    if batch is None:
                        break
                    decoded.append(batch)
                    n_bytes += batch.nbytes
                    check_expansion(n_bytes, n_packed, self.path)
                    if n_bytes - start > _DECODED_BYTES:
                        break
                if not decoded:
                    return
                columns = self._guarded(lambda batches=decoded: _columns(batches))
                n_rows = sum(batch.num_rows for batch in decoded)
                yield TableRows(columns, list(range(n_read + 1, n_read + 1 + n_rows)))
                n_read += n_rows


def _decoded(batch: Any) -> Any:
    """Rows whose texts are not numbers of the entries of a dictionary, which hide their size."""
    if batch is None:
        return None
    arrow = require("pyarrow", "formats")
    columns = [
        column.dictionary_decode() if arrow.types.is_dictionary(column.type) else column
        for column in batch.columns
    ]
    return arrow.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _is_numeric(kind: Any) -> bool:
    types = require("pyarrow", "formats").types
    return types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)


def _columns(batches: list[Any]) -> list[Sequence[Any]]:
    table = require("pyarrow", "formats").Table.from_batches(batches)
    return [_arrow_values(column) for column in table.columns]


def _arrow_values(column: Any) -> Sequence[Any]:
    if _is_numeric(column.type):
        return column.cast("float64", safe=False).to_numpy()  # large whole numbers are rounded
    return column.to_pylist()


def _looks_like_header(cells: list[str]) -> bool:
    names = [cell.strip() for cell in cells]
    distinct = all(names) and len(set(names)) == len(names)
    return distinct and not any(is_number(name.replace(",", "")) for name in names)


def _is_broken_header(first: list[str], second: Sequence[str] = ()) -> bool:
    """Whether a row of words, some empty or repeated, is above a row with numbers."""
    names = [cell.strip() for cell in first]
    if any(is_number(name.replace(",", "")) for name in names):
        return False
    return any(bool(name) and is_number(below) for name, below in zip(names, second, strict=False))


def _is_index_header(first: list[str], second: Sequence[str] = ()) -> bool:
    """Whether only the first cell of a header is empty or called as pandas calls such a column."""
    names = [cell.strip() for cell in first]
    if names[0] == INDEX_NAME:
        return True
    if names[0] or len(names) < 2 or not second or not second[0].strip():
        return False
    return _looks_like_header(names[1:]) and (
        is_number(second[0]) or _is_broken_header(first, second)
    )


def _header_fault(cells: list[str]) -> str:
    names = [cell.strip() for cell in cells]
    if "" in names:
        return f"has no name for column {names.index('') + 1}"
    repeated = next(name for name in names if names.count(name) > 1)
    return f"has the name {repeated!r} twice"

"""Excel workbooks (.xlsx): one sheet as a table."""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from labelweave.data.compressed_files import FilePath, check_expansion
from labelweave.data.readers._table.cells import parse_numbers
from labelweave.data.readers._table.csv_parquet import CHUNK_ROWS, INDEX_NAME, TableRows
from labelweave.exceptions import DataFileError, require

__all__ = ["ExcelTable"]

_MAX_EXPANSION = 200  # sheets compress by about 10
_HEAD_BYTES = 2**12


class ExcelTable:
    """A sheet of a workbook whose first row names the columns.

    Parameters
    ----------
    path : path-like
    sheet : str or int, optional
        The name of the sheet, or its number from 0; by default the first. Formulas are read as the
        values that were stored with them.
    """

    decimal = "."
    null_is_unknown = False

    def __init__(self, path: FilePath, sheet: str | int | None = None) -> None:
        self.path = path
        self._openpyxl = require("openpyxl", "formats")
        _check_archive(path)
        with _guarded(path), self._open_book() as book:
            names = [page.title for page in book.worksheets]
        self.sheet = _chosen_sheet(names, sheet, path)
        header = next(self._rows(), None)
        if header is None:
            raise DataFileError(f"the sheet {self.sheet!r} is empty", path=path)
        cells = list(header[0])
        while cells and cells[-1] is None:
            cells.pop()
        self.names = ["" if cell is None else str(cell).strip() for cell in cells]
        self.index_column: int | None = None
        if self.names and self.names[0] in ("", INDEX_NAME):
            self.index_column, self.names[0] = 0, INDEX_NAME
        for j, name in enumerate(self.names):
            if not name or name in self.names[:j]:
                fault = (
                    f"has the name {name!r} twice" if name else f"has no name for column {j + 1}"
                )
                raise DataFileError(f"the header {fault}: correct it", path=path, line=header[1])

    def chunks(
        self, numbers: Collection[int] = (), texts: Collection[int] | None = None
    ) -> Iterator[TableRows]:
        """Read all rows. Columns of `numbers` are arrays where all their cells are numbers."""
        rows = islice(self._rows(), 1, None)
        while chunk := list(islice(rows, CHUNK_ROWS)):
            for cells, line in chunk:
                if any(cell is not None for cell in cells[len(self.names) :]):
                    raise DataFileError(
                        f"the row has a cell beyond the {len(self.names)} columns of the header",
                        path=self.path,
                        line=line,
                    )
            width = len(self.names)
            columns: list[Any] = list(
                zip(*((cells + (None,) * width)[:width] for cells, _ in chunk), strict=True)
            )
            for j in set(numbers) - set(texts or ()):
                values, wrong = parse_numbers(columns[j])
                columns[j] = values if wrong is None else columns[j]
            yield TableRows(columns, [line for _, line in chunk])

    def _rows(self) -> Iterator[tuple[tuple[Any, ...], int]]:
        """Cells and number of each row that has any; whole numbers are not floats."""
        with _guarded(self.path), self._open_book() as book:
            page = book[self.sheet]
            page.reset_dimensions()  # what the file says about its size may be wrong
            for number, cells in enumerate(page.iter_rows(values_only=True), 1):
                if any(cell is not None for cell in cells):
                    yield cells, number

    @contextmanager
    def _open_book(self) -> Iterator[Any]:
        """The workbook; openpyxl gets an open file, as it refuses paths with other endings."""
        with Path(self.path).open("rb") as file:
            book = self._openpyxl.load_workbook(file, read_only=True, data_only=True)
            try:
                yield book
            finally:
                book.close()


def _chosen_sheet(names: list[str], sheet: str | int | None, path: FilePath) -> str:
    if not names:
        raise DataFileError("the workbook has no sheet of cells", path=path)
    if sheet is None:
        return names[0]
    if isinstance(sheet, int) and not isinstance(sheet, bool) and 0 <= sheet < len(names):
        return names[sheet]
    if str(sheet) in names:  # also a number
        return str(sheet)
    raise DataFileError(
        f"there is no sheet {sheet!r}; the sheets are {', '.join(map(repr, names))}",
        path=path,
        parameter="sheet",
    )


class _guarded:  # noqa: N801 - used like a function
    """Turns every error of openpyxl, which has no class in common, into one sentence."""

    def __init__(self, path: FilePath) -> None:
        self.path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, _: Any) -> None:
        if isinstance(error, Exception) and not isinstance(error, DataFileError):
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise DataFileError(
                f"the workbook cannot be read ({reason}): save it again as .xlsx or as CSV",
                path=self.path,
            ) from None


def _check_archive(path: FilePath) -> None:
    """Refuse archives that unpack to an absurd amount of data, and XML that can expand."""
    if not Path(path).is_file():
        raise DataFileError("there is no such file", path=path)
    with _guarded(path), zipfile.ZipFile(path) as archive:
        n_bytes = sum(member.file_size for member in archive.infolist())
        check_expansion(n_bytes, Path(path).stat().st_size, path, most=_MAX_EXPANSION)
        for member in archive.infolist():
            with archive.open(member) as file:
                head = file.read(_HEAD_BYTES)
            if b"<!DOCTYPE" in head or b"<!ENTITY" in head:
                raise DataFileError(
                    "the file must not declare a document type or entities", path=path
                )

"""Several files that are read as one: a list, a pattern, or a folder of Parquet files."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike, fspath
from pathlib import Path
from urllib.parse import unquote

from labelweave.data.text_encodings import EncodedPath, check_encoding
from labelweave.exceptions import DataFileError

__all__ = ["SeveralFiles", "folder_of", "resolve_files"]

_PARQUET = (".parquet", ".pq")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


@dataclass(frozen=True)
class SeveralFiles(PathLike):
    """Files with the same columns, whose rows follow each other.

    `name` is what the user wrote, for messages. `partitions` has the columns that the folders of
    each file add, as in ``year=2024/part-0.parquet``.
    """

    name: str
    files: tuple[str | EncodedPath, ...]
    partitions: tuple[Mapping[str, str | None], ...] = field(default=())

    def __fspath__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name


def folder_of(path: str | PathLike[str]) -> str | None:
    """Return the full path of the folder of a file; None if several files are in different ones.

    >>> folder_of("/data/products.csv")
    '/data'
    """
    files = path.files if isinstance(path, SeveralFiles) else (path,)
    folders = {str(Path(fspath(file)).absolute().parent) for file in files}
    return folders.pop() if len(folders) == 1 else None


def resolve_files(
    path: str | PathLike[str] | Sequence[str | PathLike[str]], encoding: str | None = None
) -> str | PathLike[str]:
    """Find the files that a path means, and note their encoding where it is not UTF-8.

    Parameters
    ----------
    path : path-like, or sequence of path-like
        One file, several, a pattern such as ``"part-*.csv"``, or a folder of Parquet files.
    encoding : str, optional
    """
    if encoding is not None:
        check_encoding(encoding)
        encoding = None if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding

    def encoded(file: str | PathLike[str]) -> str | EncodedPath:
        return fspath(file) if encoding is None else EncodedPath(fspath(file), encoding)

    if not isinstance(path, str | PathLike):
        files = [fspath(file) for file in path]
        if not files:
            raise DataFileError("the list of files is empty: name at least one")
        if len(files) == 1:
            return encoded(files[0])
        return SeveralFiles(f"{files[0]} and {len(files) - 1} more", tuple(map(encoded, files)))
    if isinstance(path, SeveralFiles | EncodedPath):
        return path
    text = fspath(path)
    if Path(text).is_dir():
        return _parquet_folder(Path(text)) or path
    if glob.has_magic(text) and not Path(text).exists():
        names = glob.iglob(text, recursive=True)  # noqa: PTH207 - the pattern may be absolute
        matching = sorted(name for name in names if Path(name).is_file())
        if not matching:
            raise DataFileError("no file matches this pattern", path=text)
        if len(matching) == 1:
            return encoded(matching[0])
        return SeveralFiles(text, tuple(map(encoded, matching)))
    return path if encoding is None else encoded(text)


def _parquet_folder(folder: Path) -> SeveralFiles | None:
    """All Parquet files of a folder and its sub-folders, if it has any."""
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in _PARQUET
        and file.is_file()
        and not any(part.startswith(("_", ".")) for part in file.relative_to(folder).parts)
    )
    if not files:
        return None
    partitions = tuple(_partition_of(file.relative_to(folder)) for file in files)
    return SeveralFiles(fspath(folder), tuple(map(fspath, files)), partitions)


def _partition_of(file: Path) -> dict[str, str | None]:
    """The columns that the names of folders add.

    >>> _partition_of(Path("year=2024/brand=A%20B/part-0.parquet"))
    {'year': '2024', 'brand': 'A B'}
    """
    pairs = (part.partition("=") for part in file.parent.parts if "=" in part)
    return {unquote(key): None if value == _NO_VALUE else unquote(value) for key, _, value in pairs}

"""Opening data files, compressed or not, as streams of bytes, lines and blocks of lines.

The kind of compression is told by the first bytes of the file, never by its ending alone;
the ending is used to notice a damaged or misnamed archive. Everything is streamed: no
function here holds more than one line or one block, and a small archive that unpacks to an
absurd amount of data is refused on the way.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from labelweave.exceptions import DataFileError, MissingExtraError, require

__all__ = [
    "COMPRESSED_ENDINGS",
    "inner_name",
    "inner_stem",
    "iter_blocks",
    "iter_lines",
    "open_binary",
    "read_whole",
]

COMPRESSED_ENDINGS = {".xz": "xz", ".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2"}

MAX_LINE_BYTES = 64 * 2**20
"""A longer line is no data; it is refused instead of being held in memory."""

MAX_EXPANSION = 2000
"""Unpacked bytes a packed byte may become, beyond the first FREE_BYTES. Repetitive tables
reach about 300; a file of nothing but zeros reaches 1,000 (gzip) to 7,000 (xz)."""

FREE_BYTES = 256 * 2**20


def open_binary(path: str | PathLike[str]) -> BinaryIO:
    """Open a file for reading bytes, unpacking .xz, .gz, .zst and .bz2 on the way.

    Damage found while reading raises :class:`~labelweave.exceptions.DataFileError`.

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.csv.gz"
    ...     _ = path.write_bytes(gzip.compress(b"sea,sun"))
    ...     with open_binary(path) as file:
    ...         file.read()
    b'sea,sun'
    """
    path = Path(path)
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise DataFileError("there is no such file", path=path) from None
    except IsADirectoryError:
        raise DataFileError("this is a folder; name the file inside it", path=path) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataFileError(f"the file cannot be opened ({reason})", path=path) from None
    try:
        return _unpacked(path, file)
    except BaseException:
        file.close()
        raise


def _unpacked(path: Path, file: BinaryIO) -> BinaryIO:
    try:
        head = file.read(16)
        file.seek(0)
    except OSError as error:
        raise DataFileError(f"the file cannot be read ({error.strerror})", path=path) from None
    kind = _kind_of(head)
    promised = COMPRESSED_ENDINGS.get(path.suffix.lower())
    if promised is not None and kind != promised:
        found = "is empty" if not head else "is not" if kind is None else f"is {kind}, not"
        wanted = "" if not head else f" {promised} data"
        raise DataFileError(
            f"the file ends in {path.suffix} but its content {found}{wanted}: "
            "it is damaged or has the wrong name",
            path=path,
        )
    if kind is None:
        return file
    stream: Any
    if kind == "xz":
        stream = lzma.LZMAFile(file)  # noqa: SIM115 - closed with the reader around it
    elif kind == "gzip":
        stream = gzip.GzipFile(fileobj=file)
    elif kind == "bzip2":
        stream = bz2.BZ2File(file)
    else:
        stream = _ZstdStream(path, file)
    raw = _GuardedReader(path, kind, stream, file)
    return cast(BinaryIO, io.BufferedReader(raw, buffer_size=2**17))


def _kind_of(head: bytes) -> str | None:
    if head.startswith(b"\xfd7zXZ\x00"):
        return "xz"
    if head.startswith(b"\x1f\x8b"):
        return "gzip"
    if head.startswith(b"BZh") and head[4:10] in (b"1AY&SY", b"\x17rE8P\x90"):
        return "bzip2"
    if head.startswith(b"\x28\xb5\x2f\xfd") or head[1:4] == b"\x2a\x4d\x18":
        return "zstd"
    return None


class _GuardedReader(io.RawIOBase):
    """Unpacked bytes of a stream; damage and bombs become one clear error."""

    def __init__(self, path: Path, kind: str, stream: IO[bytes], packed: BinaryIO) -> None:
        self._path = path
        self._kind = kind
        self._stream = stream
        self._packed = packed
        self._n_unpacked = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self._stream.read(len(buffer))
        except (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error) as error:
            raise self._damaged(error) from None
        except Exception as error:
            # zstandard's own error class may only be named where zstandard is installed.
            if type(error).__module__.partition(".")[0] != "zstandard":
                raise
            raise self._damaged(error) from None
        buffer[: len(data)] = data
        self._n_unpacked += len(data)
        if self._n_unpacked > FREE_BYTES:
            limit = FREE_BYTES + MAX_EXPANSION * self._packed.tell()
            if self._n_unpacked > limit:
                raise DataFileError(
                    f"the archive unpacks to more than {MAX_EXPANSION} times its size, which no "
                    "data file does: it is refused; unpack it yourself if you trust it",
                    path=self._path,
                )
        return len(data)

    def _damaged(self, error: Exception) -> DataFileError:
        return DataFileError(
            f"the {self._kind} archive is damaged or cut short ({error}): fetch it again",
            path=self._path,
        )

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._packed.close()
        super().close()


class _ZstdStream:
    """Unpacked bytes of zstd frames; a frame cut short is an error, not an early end."""

    # A few bytes can stand for 128 KiB, so a step this small bounds what one step unpacks.
    STEP = 2048

    def __init__(self, path: Path, packed: BinaryIO) -> None:
        try:
            self._zstandard = require("zstandard", "formats")
        except MissingExtraError as error:
            raise MissingExtraError(f"{path}: {error}") from None
        self._packed = packed
        self._frame: Any = None
        self._waiting = b""  # unpacked, not yet given out
        self._unused = b""  # packed bytes that follow the last frame

    def read(self, size: int) -> bytes:
        while not self._waiting:
            data = self._unused or self._packed.read(self.STEP)
            self._unused = b""
            if not data:
                if self._frame is not None:
                    raise EOFError("the archive ends early")
                return b""
            if self._frame is None:
                self._frame = self._zstandard.ZstdDecompressor().decompressobj()
            self._waiting = self._frame.decompress(data)
            if self._frame.eof:
                self._unused = self._frame.unused_data
                self._frame = None
        given, self._waiting = self._waiting[:size], self._waiting[size:]
        return given

    def close(self) -> None:
        self._waiting = self._unused = b""


def iter_lines(path: str | PathLike[str]) -> Iterator[tuple[int, str]]:
    r"""Number (from 1) and text of each line, without its end; UTF-8 or a clear error.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.txt"
    ...     _ = path.write_bytes(b"\xef\xbb\xbfsea\r\nsun")
    ...     list(iter_lines(path))
    [(1, 'sea'), (2, 'sun')]
    """
    with open_binary(path) as file:
        number = 0
        while line := read_line(file, path, number + 1):
            number += 1
            if number == 1:
                line = line.removeprefix(b"\xef\xbb\xbf")
            yield number, decode(line, path, number).rstrip("\r\n")


def read_line(file: BinaryIO, path: str | PathLike[str], number: int) -> bytes:
    """The next line with its end, empty at the end of the file; absurd lengths are refused."""
    line = file.readline(MAX_LINE_BYTES)
    if len(line) == MAX_LINE_BYTES:
        raise _too_long(path, number)
    return line


def _too_long(path: str | PathLike[str], number: int) -> DataFileError:
    limit = MAX_LINE_BYTES // 2**20
    return DataFileError(
        f"the line is longer than {limit} MiB: this is no data file", path=path, line=number
    )


def decode(line: bytes, path: str | PathLike[str], number: int | None) -> str:
    """UTF-8 text of a line."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"byte {error.start + 1} of the line is not UTF-8 text: convert the file to UTF-8",
            path=path,
            line=number,
        ) from None


def iter_blocks(
    file: BinaryIO, path: str | PathLike[str], *, first_line: int = 1, size: int = 2**18
) -> Iterator[tuple[int, bytes]]:
    """Whole lines of an open file, about `size` bytes at a time, with their first number.

    Every block ends with a line feed. Small blocks stay in the processor's cache, which makes
    vectorised parsing several times quicker than over the whole file.
    """
    number = first_line
    kept: list[bytes] = []  # the beginning of a line whose end was not read yet
    while data := file.read(size):
        cut = data.rfind(b"\n") + 1
        if cut:
            block = b"".join((*kept, data[:cut]))
            kept = [data[cut:]]
            yield number, block
            number += block.count(b"\n")
        else:
            kept.append(data)
            if len(kept) * size > MAX_LINE_BYTES:
                raise _too_long(path, number)
    if last := b"".join(kept):
        yield number, last + b"\n"


def read_whole(path: str | PathLike[str], *, limit: int = 64 * 2**20) -> bytes:
    """All bytes of a small side file (labels, XML); more than `limit` is refused."""
    with open_binary(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise DataFileError(
            f"the file is larger than {limit // 2**20} MiB, far too large for what it should be",
            path=path,
        )
    return data


def inner_name(path: str | PathLike[str]) -> str:
    """File name without the ending of a compression.

    >>> inner_name("some/scene-train.arff.xz")
    'scene-train.arff'
    """
    path = Path(path)
    return path.stem if path.suffix.lower() in COMPRESSED_ENDINGS else path.name


def inner_stem(path: str | PathLike[str]) -> str:
    """File name without the endings of compression and format.

    >>> inner_stem("some/scene-train.arff.xz")
    'scene-train'
    """
    return Path(inner_name(path)).stem

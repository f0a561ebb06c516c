"""Opening data files, compressed or not, as streams of bytes, lines and chunks of lines.

The first bytes of a file say how it is compressed. The ending of its name is only used to notice a
damaged or misnamed archive. Everything is streamed: no function here holds more than one line or
one chunk in memory, and an archive that unpacks to an absurd amount of data is refused on the way.
"""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import zlib
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import IO, Any, BinaryIO, cast
from xml.etree import ElementTree

from labelweave.data.text_encodings import EncodedPath, RecodedReader, likely_encoding
from labelweave.exceptions import DataFileError, MissingExtraError, require

FilePath = str | PathLike[str]

COMPRESSED_ENDINGS = {".xz": "xz", ".gz": "gzip", ".zst": "zstd", ".bz2": "bzip2"}

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What some programs write at the start of UTF-8 files; it is not part of the text."""

MAX_LINE_BYTES = 64 * 2**20
"""A longer line is refused instead of being held in memory."""

MAX_EXPANSION = 2000
"""Largest ratio of unpacked to packed bytes, beyond the first FREE_BYTES. Repetitive tables reach
about 300; a file of nothing but zeros reaches 1,000 (gzip) to 7,000 (xz)."""

FREE_BYTES = 256 * 2**20


def open_binary(path: FilePath) -> BinaryIO:
    """Open a file for reading bytes; .xz, .gz, .zst and .bz2 files are unpacked on the way.

    The content of an :class:`~labelweave.data.text_encodings.EncodedPath` comes as UTF-8. Damage
    that is found while reading raises :class:`~labelweave.exceptions.DataFileError`.

    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "a.csv.gz"
    ...     _ = path.write_bytes(gzip.compress(b"sea,sun"))
    ...     with open_binary(path) as file:
    ...         file.read()
    b'sea,sun'
    """
    if isinstance(path, EncodedPath):
        recoded = RecodedReader(open_binary(path.path), path, path.encoding)
        return cast(BinaryIO, io.BufferedReader(recoded, buffer_size=2**17))
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
    compression = _compression_of(head)
    expected = COMPRESSED_ENDINGS.get(path.suffix.lower())
    if expected is not None and compression != expected:
        content = "is empty"
        if head:
            content = f"is not {expected} data"
            if compression is not None:
                content = f"is {compression}, not {expected} data"
        raise DataFileError(
            f"the file ends in {path.suffix} but its content {content}: "
            "it is damaged or has the wrong name",
            path=path,
        )
    if compression is None:
        return file
    stream: Any
    if compression == "xz":
        stream = lzma.LZMAFile(file)  # noqa: SIM115 - closed with the reader around it
    elif compression == "gzip":
        stream = gzip.GzipFile(fileobj=file)
    elif compression == "bzip2":
        stream = bz2.BZ2File(file)
    else:
        stream = _ZstdStream(path, file)
    raw = _GuardedReader(path, compression, stream, file)
    return cast(BinaryIO, io.BufferedReader(raw, buffer_size=2**17))


def check_expansion(
    n_unpacked: int, n_packed: int, path: FilePath, *, most: int = MAX_EXPANSION
) -> None:
    """Refuse a file whose content is `most` times larger, beyond the first FREE_BYTES."""
    if n_unpacked > FREE_BYTES + most * n_packed:
        raise DataFileError(
            f"the file unpacks to more than {most} times its size, which no data file does, and "
            "is refused: unpack it yourself if you trust it",
            path=path,
        )


def _compression_of(head: bytes) -> str | None:
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
    """Unpacked bytes of a stream; damage and decompression bombs raise one clear error."""

    def __init__(self, path: Path, compression: str, stream: IO[bytes], packed: BinaryIO) -> None:
        self._path = path
        self._compression = compression
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
            # zstandard's own error class can only be named where zstandard is installed.
            if type(error).__module__.partition(".")[0] != "zstandard":
                raise
            raise self._damaged(error) from None
        buffer[: len(data)] = data
        self._n_unpacked += len(data)
        if self._n_unpacked > FREE_BYTES:
            check_expansion(self._n_unpacked, self._packed.tell(), self._path)
        return len(data)

    def _damaged(self, error: Exception) -> DataFileError:
        return DataFileError(
            f"the {self._compression} archive is damaged or truncated ({error}): fetch it again",
            path=self._path,
        )

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
            self._packed.close()
        super().close()


class _ZstdStream:
    """Unpacked bytes of zstd frames; a truncated frame is an error, not an early end."""

    # A few bytes can stand for 128 KiB, so a step this small bounds what one step unpacks.
    STEP = 2048

    def __init__(self, path: Path, packed: BinaryIO) -> None:
        try:
            self._zstandard = require("zstandard", "formats")
        except MissingExtraError as error:
            raise MissingExtraError(f"{path}: {error}") from None
        self._packed = packed
        self._frame: Any = None
        self._unpacked = b""  # not yet returned
        self._unused = b""  # packed bytes that follow the last frame

    def read(self, size: int) -> bytes:
        while not self._unpacked:
            data = self._unused or self._packed.read(self.STEP)
            self._unused = b""
            if not data:
                if self._frame is not None:
                    raise EOFError("the archive ends early")
                return b""
            if self._frame is None:
                self._frame = self._zstandard.ZstdDecompressor().decompressobj()
            self._unpacked = self._frame.decompress(data)
            if self._frame.eof:
                self._unused = self._frame.unused_data
                self._frame = None
        data, self._unpacked = self._unpacked[:size], self._unpacked[size:]
        return data

    def close(self) -> None:
        self._unpacked = self._unused = b""


def iter_lines(path: FilePath, *, keep_ends: bool = False) -> Iterator[tuple[int, str]]:
    r"""Iterate over the lines of a UTF-8 file: number (from 1) and text, without the line end.

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
            text = decode(line, path, number)
            yield number, text if keep_ends else text.rstrip("\r\n")


def read_line(file: BinaryIO, path: FilePath, number: int) -> bytes:
    """Return the next line with its end, or nothing at the end of the file.

    `number` is the number of the line: the first loses its byte order mark, and the error for a
    line of absurd length names it.
    """
    line = file.readline(MAX_LINE_BYTES)
    if len(line) == MAX_LINE_BYTES:
        raise _line_too_long(path, number)
    return line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line


def _line_too_long(path: FilePath, number: int) -> DataFileError:
    limit = MAX_LINE_BYTES // 2**20
    return DataFileError(
        f"the line is longer than {limit} MiB: this is not a data file", path=path, line=number
    )


def decode(line: bytes, path: FilePath, number: int | None) -> str:
    """Decode a line of UTF-8 text; `number` is its number for the error message."""
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataFileError(
            f"byte {error.start + 1} of the line is not UTF-8 text: the encoding is probably "
            f"{likely_encoding(line)}; say so with encoding=, or convert the file to UTF-8",
            path=path,
            line=number,
            parameter="encoding",
        ) from None


def iter_json_objects(path: FilePath) -> Iterator[tuple[int, dict[str, Any]]]:
    """Iterate over the objects of a JSON Lines file, or of one JSON array: line and object."""
    from labelweave.data.json_arrays import is_json_array, iter_json_array

    for number, value in iter_json_array(path) if is_json_array(path) else _json_lines(path):
        if not isinstance(value, dict):
            raise DataFileError(
                'expected a JSON object such as {"text": ..., "labels": [...]}',
                path=path,
                line=number,
            )
        yield number, value


def _json_lines(path: FilePath) -> Iterator[tuple[int, Any]]:
    for number, line in iter_lines(path):
        if line.strip():
            yield number, parse_json(line, path, number)


def parse_json(text: str | bytes, path: FilePath, line: int | None = None) -> Any:
    """Parse JSON; an error names the file and the line."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DataFileError(f"this is not valid JSON ({error})", path=path, line=line) from None


def parse_xml(text: bytes, path: FilePath) -> ElementTree.Element:
    """Parse XML; document types and entities, which can expand without end, are refused."""
    if b"<!ENTITY" in text or b"<!DOCTYPE" in text:
        raise DataFileError("the file must not declare a document type or entities", path=path)
    try:
        return ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError, LookupError) as error:
        raise DataFileError(f"this is not well-formed XML ({error})", path=path) from None


def iter_line_chunks(
    file: BinaryIO, path: FilePath, *, first_line: int = 1, size: int = 2**18
) -> Iterator[tuple[int, bytes]]:
    """Iterate over an open file in chunks of whole lines, about `size` bytes each.

    Every chunk comes with the number of its first line and ends with a line feed. Small chunks stay
    in the processor's cache, which makes vectorised parsing several times faster than over the
    whole file at once.
    """
    number = first_line
    incomplete: list[bytes] = []  # the beginning of a line whose end has not been read yet
    while data := file.read(size):
        end = data.rfind(b"\n") + 1
        if end:
            chunk = b"".join((*incomplete, data[:end]))
            incomplete = [data[end:]]
            yield number, chunk
            number += chunk.count(b"\n")
        else:
            incomplete.append(data)
            if len(incomplete) * size > MAX_LINE_BYTES:
                raise _line_too_long(path, number)
    if last := b"".join(incomplete):
        yield number, last + b"\n"


def read_small_file(path: FilePath, *, limit: int = 64 * 2**20) -> bytes:
    """Read all bytes of a small file (label names, XML); more than `limit` bytes are refused."""
    with open_binary(path) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise DataFileError(
            f"the file is larger than {limit // 2**20} MiB, far too large for what it should be",
            path=path,
        )
    return data.removeprefix(BYTE_ORDER_MARK)


def uncompressed_name(path: FilePath) -> str:
    """Name of a file without the ending of its compression.

    >>> uncompressed_name("some/scene-train.arff.xz")
    'scene-train.arff'
    """
    path = Path(path)
    return path.stem if path.suffix.lower() in COMPRESSED_ENDINGS else path.name


def uncompressed_stem(path: FilePath) -> str:
    """Name of a file without the endings of its compression and its format.

    >>> uncompressed_stem("some/scene-train.arff.xz")
    'scene-train'
    """
    return Path(uncompressed_name(path)).stem

"""Downloading one file from its public source, with a check of its content.

The bytes are written to a temporary file beside the target, which is renamed only if the checksum
is right. Whatever goes wrong, an existing file stays as it was.
"""

from __future__ import annotations

import hashlib
import http.client
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

from labelweave.exceptions import DatasetUnavailableError, InputError
from labelweave.files import atomic_path
from labelweave.progress import ProgressBar

_CHUNK = 1 << 16
_SCHEMES = ("https", "http", "file")


def sha256_of(path: str | PathLike[str]) -> str:
    """The SHA-256 checksum of a file, in hexadecimal.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "empty"
    ...     path.touch()
    ...     sha256_of(path)[:12]
    'e3b0c44298fc'
    """
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def download(
    url: str,
    target: str | PathLike[str],
    *,
    sha256: str,
    size: int | None = None,
    timeout: float = 30.0,
) -> Path:
    """Download a file unless it exists already with the right content, and return its path.

    The address is of the kind `https`, `http` or `file`; missing folders of `target` are made. A
    file with another checksum is not kept, and one that is longer than `size` bytes is refused. The
    download fails after `timeout` seconds without an answer. Raises DatasetUnavailableError if the
    source cannot be reached, the content is incomplete or another, or the file cannot be written.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source = Path(folder) / "source.txt"
    ...     _ = source.write_text("a,b")
    ...     copy = download(source.as_uri(), Path(folder) / "copy.txt", sha256=sha256_of(source))
    ...     copy.read_text()
    'a,b'
    """
    target = Path(target)
    if urlsplit(url).scheme not in _SCHEMES:
        raise InputError(
            f"cannot download {url}: only https, http and file addresses are supported"
        )
    if target.is_file() and sha256_of(target) == sha256:
        return target
    with _writing_errors(target), atomic_path(target) as temporary:
        with _source_errors(url, timeout):
            source = _open(url, timeout)
        announced = getattr(source, "headers", {}).get("Content-Length")
        expected = int(announced) if announced is not None and announced.isdigit() else size
        bar = ProgressBar(f"downloading {target.name}", expected, verbose=True, unit="bytes")
        with source, temporary.open("wb") as sink, bar:
            digest, received = _copy(source, sink, url, timeout, size, bar)
        _check(url, digest, sha256, received, expected)
    return target


def _open(url: str, timeout: float) -> BinaryIO:
    # Without other handlers, so that no redirect leads to ftp: or to a local file.
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.FileHandler(),
        urllib.request.UnknownHandler(),
    ):
        opener.add_handler(handler)
    request = urllib.request.Request(url, headers={"User-Agent": "labelweave"})
    return opener.open(request, timeout=timeout)


def _copy(
    source: BinaryIO, sink: BinaryIO, url: str, timeout: float, limit: int | None, bar: ProgressBar
) -> tuple[str, int]:
    """Copy the source; return the checksum and the number of bytes."""
    digest, received = hashlib.sha256(), 0
    while True:
        with _source_errors(url, timeout):
            chunk = source.read(_CHUNK)
        if not chunk:
            return digest.hexdigest(), received
        received += len(chunk)
        if limit is not None and received > limit:
            raise DatasetUnavailableError(
                f"{url} sends more than the {limit} bytes of the file: nothing was kept"
            )
        digest.update(chunk)
        sink.write(chunk)
        bar.move_to(received)


def _check(url: str, digest: str, sha256: str, received: int, expected: int | None) -> None:
    if expected is not None and received < expected:
        raise DatasetUnavailableError(
            f"the download of {url} ended after {received} of {expected} bytes: nothing was kept, "
            "try again"
        )
    if digest != sha256:
        raise DatasetUnavailableError(
            f"{url} has the SHA-256 checksum {digest[:12]}... instead of {sha256[:12]}...: "
            "it is not the expected file, and nothing was kept"
        )


@contextmanager
def _source_errors(url: str, timeout: float) -> Iterator[None]:
    """Turn errors of the source into one line."""
    try:
        yield
    except urllib.error.HTTPError as error:
        reason = f"the server answered {error.code} {error.reason}"
    except TimeoutError:
        reason = f"no answer within {timeout:g} seconds"
    except urllib.error.URLError as error:
        reason = str(error.reason)
        if isinstance(error.reason, TimeoutError):
            reason = f"no answer within {timeout:g} seconds"
    except (http.client.HTTPException, OSError) as error:
        reason = f"the connection failed ({type(error).__name__})"
    else:
        return
    raise DatasetUnavailableError(f"cannot download {url}: {reason}")


@contextmanager
def _writing_errors(target: Path) -> Iterator[None]:
    """Turn errors of the local disk into one line."""
    try:
        yield
    except DatasetUnavailableError:
        raise
    except OSError as error:
        raise DatasetUnavailableError(
            f"cannot write {target}: {error.strerror or error}; "
            "free some space, or set LABELWEAVE_CACHE to a folder you may write to"
        ) from error

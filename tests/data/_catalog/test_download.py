"""Downloads from a server on the loopback: what is kept, what is refused, the messages."""

import errno
import hashlib
import os
import socket
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from labelweave.data._catalog import download as module
from labelweave.data._catalog.download import download, sha256_of
from labelweave.exceptions import DatasetUnavailableError, InputError
from labelweave.files import cache_folder

BODY = b"0123456789" * 20_000
CHECKSUM = hashlib.sha256(BODY).hexdigest()
REDIRECTS = {
    "/moved": "/whole",
    "/to-a-file": "file:///etc/hostname",
    "/to-ftp": "ftp://127.0.0.1/file",
}


class Handler(BaseHTTPRequestHandler):
    release = threading.Event()
    requests: ClassVar[list[str]] = []

    def do_GET(self):
        self.requests.append(self.path)
        if self.path == "/missing":
            self.send_error(404)
        elif self.path == "/silent":
            self.release.wait(10)
        elif self.path == "/stalls":
            self._answer(len(BODY), BODY[:1000])
            self.wfile.flush()
            self.release.wait(10)
        elif self.path == "/short":
            self._answer(len(BODY), BODY[: len(BODY) // 2])
        elif self.path == "/wrong":
            self._answer(len(BODY), BODY[::-1])
        elif self.path == "/endless":
            self._answer(None, BODY * 3)
        elif self.path in REDIRECTS:
            self.send_response(302)
            self.send_header("Location", REDIRECTS[self.path])
            self.end_headers()
        else:
            self._answer(len(BODY), BODY)

    def _answer(self, length, body):
        self.send_response(200)
        if length is not None:
            self.send_header("Content-Length", str(length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    Handler.release.clear()
    Handler.requests.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http_server:
        http_server.daemon_threads = True
        thread = threading.Thread(target=http_server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{http_server.server_port}"
        Handler.release.set()
        http_server.shutdown()
        thread.join()


def names_in(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


@contextmanager
def refused_leaving_the_old_file(folder: Path, pattern: str):
    """The block fails with this message, and the old file alone is there afterwards."""
    target = folder / "file.arff"
    target.write_text("old")
    with pytest.raises(DatasetUnavailableError, match=pattern) as caught:
        yield target
    assert "\n" not in str(caught.value)
    assert target.read_text() == "old"
    assert names_in(folder) == ["file.arff"]


@pytest.mark.parametrize("path", ["/whole", "/moved"])
def test_a_whole_file_arrives(server, tmp_path, path):
    target = download(f"{server}{path}", tmp_path / "new" / "file.arff", sha256=CHECKSUM)
    assert target.read_bytes() == BODY
    assert names_in(target.parent) == ["file.arff"]


def test_a_file_that_is_there_is_not_fetched_again(server, tmp_path):
    for _ in range(2):
        download(f"{server}/whole", tmp_path / "file", sha256=CHECKSUM)
    assert Handler.requests == ["/whole"]


def test_a_damaged_file_is_fetched_again(server, tmp_path):
    target = tmp_path / "file"
    target.write_text("damaged")
    download(f"{server}/whole", target, sha256=CHECKSUM)
    assert sha256_of(target) == CHECKSUM


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("/missing", "cannot download .*/missing: the server answered 404"),
        ("/short", "ended after 100000 of 200000 bytes"),
        ("/wrong", "checksum .* instead of"),
        ("/to-a-file", "cannot download"),
        ("/to-ftp", "cannot download"),
    ],
)
def test_a_bad_answer_keeps_the_old_file(server, tmp_path, path, pattern):
    with refused_leaving_the_old_file(tmp_path, pattern) as target:
        download(f"{server}{path}", target, sha256=CHECKSUM)


@pytest.mark.parametrize("path", ["/silent", "/stalls"])
def test_a_silent_server_is_an_error(server, tmp_path, path):
    with refused_leaving_the_old_file(tmp_path, "no answer within 0.2 seconds") as target:
        download(f"{server}{path}", target, sha256=CHECKSUM, timeout=0.2)


def test_more_bytes_than_the_file_has_are_not_read_to_the_end(server, tmp_path):
    with refused_leaving_the_old_file(tmp_path, "more than the 1000 bytes") as target:
        download(f"{server}/endless", target, sha256=CHECKSUM, size=1000)


def test_a_refused_connection(tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]  # taken, but nobody listens
        with refused_leaving_the_old_file(tmp_path, "cannot download .*refused") as target:
            download(f"http://127.0.0.1:{port}/file", target, sha256=CHECKSUM)


def test_no_network(tmp_path, monkeypatch):
    def no_such_host(*args, **kwargs):
        raise socket.gaierror(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", no_such_host)
    monkeypatch.setenv("no_proxy", "*")
    with refused_leaving_the_old_file(tmp_path, "name resolution") as target:
        download("https://example.org/file", target, sha256=CHECKSUM)


def test_a_local_file_may_be_the_source(tmp_path):
    source = tmp_path / "source"
    source.write_bytes(BODY)
    assert download(source.as_uri(), tmp_path / "copy", sha256=CHECKSUM).read_bytes() == BODY
    with pytest.raises(DatasetUnavailableError, match="cannot download"):
        download((tmp_path / "none").as_uri(), tmp_path / "other", sha256=CHECKSUM)


@pytest.mark.parametrize("url", ["ftp://example.org/a", "a/b", "data:,a"])
def test_other_addresses_are_refused(tmp_path, url):
    with pytest.raises(InputError, match="only https, http and file"):
        download(url, tmp_path / "file", sha256=CHECKSUM)


def test_a_full_disk_is_named(server, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(module, "_copy", full)
    with refused_leaving_the_old_file(tmp_path, "No space left.*LABELWEAVE_CACHE") as target:
        download(f"{server}/whole", target, sha256=CHECKSUM)


def test_a_folder_that_cannot_be_made_is_named(server, tmp_path):
    (tmp_path / "taken").write_text("a file, not a folder")
    with pytest.raises(DatasetUnavailableError, match=r"cannot write .*LABELWEAVE_CACHE"):
        download(f"{server}/whole", tmp_path / "taken" / "file", sha256=CHECKSUM)


def test_an_interrupted_download_leaves_nothing_behind(server, tmp_path, monkeypatch):
    def interrupt(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.ProgressBar, "move_to", interrupt)
    target = tmp_path / "file"
    target.write_text("old")
    with pytest.raises(KeyboardInterrupt):
        download(f"{server}/whole", target, sha256=CHECKSUM)
    assert names_in(tmp_path) == ["file"]
    assert target.read_text() == "old"


def test_a_long_download_is_shown(server, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("labelweave.progress._LINE_SECONDS", 0.0)
    download(f"{server}/whole", tmp_path / "scene.arff", sha256=CHECKSUM)
    assert capsys.readouterr().err.splitlines()[-1] == "downloading scene.arff: 100%"


def test_the_cache_folder_follows_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("LABELWEAVE_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.delenv("LABELWEAVE_CACHE")
    assert cache_folder().name == "labelweave"

"""Attacks on a running service, and what it does meanwhile.

Each attack is a function of the service's port. While it runs, the health of the service is asked
for every tenth of a second, and the memory of its processes is read. Used by `serve_abuse.py`.
"""

from __future__ import annotations

import io
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

MEGABYTE = 2**20
HEAD = "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\n"
PREDICT = "/v1/models/news/predict"


class Attack(NamedTuple):
    """A title, the statuses that may be the answer, and what sends it and returns the status."""

    title: str
    expected: str
    run: Callable[[int], str]


def head(path: str = PREDICT, kind: str = "application/json", method: str = "POST") -> bytes:
    return HEAD.format(path=path, kind=kind, method=method).encode()


def sized(body: bytes, length: int | None = None, **options: str) -> bytes:
    n_bytes = len(body) if length is None else length
    return head(**options) + b"Content-Length: %d\r\n\r\n" % n_bytes + body


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=120)


def status_of(connection: socket.socket) -> str:
    try:
        answer = connection.recv(4096)
    except OSError:
        return "closed"
    return answer.split(b" ", 2)[1].decode() if answer.startswith(b"HTTP") else "closed"


def send(
    content: bytes, repeat: bytes = b"", times: int = 0, *, end: bool = False
) -> Callable[[int], str]:
    """Send a request, and then a part again and again; the status of the answer.

    With `end` the client says that nothing more will come.
    """

    def run(port: int) -> str:
        with connect(port) as connection:
            try:
                connection.sendall(content)
                for _ in range(times):
                    connection.sendall(repeat)
                if end:
                    connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it does not listen to the end
            return status_of(connection)

    return run


def together(n: int, run: Callable[[int], str]) -> Callable[[int], str]:
    """The same from n clients at once; the statuses, each once."""

    def run_all(port: int) -> str:
        with ThreadPoolExecutor(n) as pool:
            return " ".join(sorted(set(pool.map(run, [port] * n))))

    return run_all


def held_open(n: int, content: bytes, seconds: float = 3.0) -> Callable[[int], str]:
    """Open connections that send so much and then nothing; is another client answered?"""

    def run(port: int) -> str:
        with ExitStack() as stack:
            for _ in range(n):
                try:
                    connection = stack.enter_context(connect(port))
                    connection.settimeout(5)
                    connection.sendall(content)
                except OSError:
                    pass  # closed for one that came later
            time.sleep(seconds)
            body = b'{"inputs": ["sea"]}'
            with connect(port) as other:
                other.sendall(sized(body))
                return status_of(other)

    return run


def body_attacks() -> Iterator[Attack]:
    million = b"x" * MEGABYTE
    chunk = b"100000\r\n" + million + b"\r\n"
    five, seven = 5 * MEGABYTE, 7 * MEGABYTE
    fields = b",".join(b'"%x":1' % i for i in range(1_500_000))
    yield Attack("1 TB announced", "413", send(sized(b"{}", 2**40)))
    yield Attack("200 MB sent", "413", send(sized(b"", 200 * MEGABYTE), million, 200))
    chunked = head() + b"Transfer-Encoding: chunked\r\n\r\n"
    yield Attack("200 MB in chunks, no length", "413 closed", send(chunked, chunk, 200))
    bodies = {
        "a text of 15 MB": (b'{"inputs": ["' + 15 * million + b'"]}', "413"),
        "5 million empty lists": (b'{"inputs": [' + b"[]," * five + b"[]]}", "413"),
        "5 million wrong known labels": (
            b'{"inputs": ["a"], "known": [' + b"[]," * five + b"[]]}",
            "413",
        ),
        "7 million wrong labels": (
            b'{"inputs": ["a"], "labels": [' + b"1," * seven + b"1]}",
            "413",
        ),
        "7 million numbers": (b'{"inputs": [[' + b"1," * seven + b"1]]}", "413"),
        "5 million empty texts": (b'{"inputs": [' + b'"",' * five + b'""]}', "413"),
        "1.5 million unknown fields": (b'{"inputs": ["a"],' + fields + b"}", "413"),
        "1.5 million known labels": (
            b'{"inputs": ["a"], "known": [{' + fields.replace(b"1,", b"2,") + b"}]}",
            "413",
        ),
        "8 million brackets": (b"[" * (8 * MEGABYTE), "413"),
        "8 million escaped quotes": (b'["[' + b'\\"[' * five, "422 413"),
        "a number of a million digits": (b'{"inputs": [[1' + b"0" * MEGABYTE + b"]]}", "422"),
        "no JSON": (b"\xff\xfe\x00" * 1000, "422"),
        "lone surrogate": (b'{"inputs": ["\\ud800"]}', "422 200"),
    }
    for title, (body, expected) in bodies.items():
        yield Attack(title, expected, send(sized(body)))
    worst = bodies["7 million wrong labels"][0]
    yield Attack("the same from 16 clients", "413 429", together(16, send(sized(worst))))
    yield Attack("truncated", "closed 400", send(sized(b'{"inputs": ["sea', 100), end=True))


def connection_attacks() -> Iterator[Attack]:
    million = b"x" * MEGABYTE
    start = head(method="GET", path="/v1/models")
    yield Attack(
        "a header without end, 256 MB", "431 400 closed", send(start + b"X: ", million, 256)
    )
    yield Attack("an address without end", "431 400 414 closed", send(b"GET /", million, 256))
    yield Attack("no HTTP", "400 closed", send(b"\x16\x03\x01\x02\x00" * 100))
    yield Attack("beside 4,200 half-sent headers", "200", held_open(4200, start))
    yield Attack("beside 4,200 silent connections", "200", held_open(4200, b""))
    part = sized(b'{"inputs": ["' + b"y" * (15 * MEGABYTE), 16 * MEGABYTE)
    # The bytes in flight are used up: others are told to come again, and health still answers.
    yield Attack("beside 400 bodies of 15 MB unfinished", "200 429", held_open(400, part))


def image_attacks() -> Iterator[Attack]:
    """Small files that are large images: 25 million pixels are the most that is allowed."""
    from PIL import Image

    def encoded(width: int, height: int, kind: str, mode: str = "RGB") -> bytes:
        stream = io.BytesIO()
        Image.new(mode, (width, height)).save(stream, kind)
        return stream.getvalue()

    path = "/v1/models/photos/predict/image"

    def post(content: bytes, kind: str) -> Callable[[int], str]:
        return send(sized(content, path=path, kind=f"image/{kind}"))

    for kind in ("png", "jpeg", "webp"):
        content = encoded(5000, 5000, kind)
        title = f"16 {kind} images of 25 million pixels, {len(content) / 1000:.0f} KB each"
        yield Attack(title, "200 503", together(16, post(content, kind)))
    deep = encoded(5000, 5000, "png", "I;16")
    yield Attack("16 images of 16 bits", "200 503", together(16, post(deep, "png")))
    bomb = encoded(20_000, 20_000, "png")
    yield Attack("400 million pixels", "413", post(bomb, "png"))
    yield Attack("an image that is cut off", "422", post(encoded(500, 500, "png")[:-50], "png"))


# -- what the service does meanwhile ---------------------------------------------------


def family(pid: int) -> list[int]:
    """A process and all that it has started."""
    pids = [pid]
    for thread in Path(f"/proc/{pid}/task").iterdir():
        for child in (thread / "children").read_text().split():
            pids += family(int(child))
    return pids


def resident(pid: int) -> float:
    """Megabytes of memory that a process has now."""
    status = Path(f"/proc/{pid}/status").read_text()
    line = next((line for line in status.splitlines() if line.startswith("VmRSS")), "0 0")
    return int(line.split()[1]) / 1024


class Watch:
    """The slowest answer of the health check and the most memory while something happens."""

    def __init__(self) -> None:
        self.slowest = 0.0
        self.memory = 0.0
        self.failed = 0


@contextmanager
def watching(pid: int, port: int) -> Iterator[Watch]:
    seen = Watch()
    over = threading.Event()

    def ask() -> None:
        while not over.wait(0.1):
            start = time.perf_counter()
            try:
                url = f"http://127.0.0.1:{port}/v1/health/live"
                with urllib.request.urlopen(url, timeout=120) as answer:
                    answer.read()
            except OSError:
                seen.failed += 1
            seen.slowest = max(seen.slowest, time.perf_counter() - start)

    def measure() -> None:
        while not over.wait(0.02):
            seen.memory = max(seen.memory, resident(pid))

    threads = [threading.Thread(target=one) for one in (ask, measure)]
    for thread in threads:
        thread.start()
    try:
        yield seen
    finally:
        over.set()
        for thread in threads:
            thread.join()


def run_attacks(title: str, pid: int, port: int, attacks: Iterator[Attack], most: float) -> int:
    """Run attacks one after the other and print what happened; the number of faults."""
    faults, slowest, memory = 0, 0.0, 0.0
    for attack in attacks:
        with watching(pid, port) as seen:
            status = attack.run(port)
        is_alive = Path(f"/proc/{pid}").exists()
        as_expected = set(status.split()) <= set(attack.expected.split())
        is_fault = not as_expected or not is_alive or seen.failed > 0 or seen.memory > most
        faults += is_fault
        slowest, memory = max(slowest, seen.slowest), max(memory, seen.memory)
        print(
            f"{title:8} {attack.title:58} {status:10} health {seen.slowest:5.2f} s"
            f"  {seen.memory:6.0f} MB{'  FAULT' if is_fault else ''}",
            flush=True,
        )
    print(
        f"{title:8} slowest health check {slowest:.2f} s, most memory {memory:.0f} MB "
        f"(allowed: {most:.0f}), {faults} faults",
        flush=True,
    )
    return faults

"""What `labelweave serve` withstands: a kill during label changes, schemathesis, hostile bodies.

Real models behind the real command, in a process of their own: XML0 with an encoder of TF-IDF
weights (its labels can change), MLP on yeast, binary relevance over texts.

killed
    1,000 label additions; the process is killed (SIGKILL) at a random moment and started again,
    until all are through. Every acknowledged addition must be there.
schema
    10,000 cases of schemathesis against the OpenAPI document: no answer of 500 or more.
hostile
    Oversized, endless, truncated, deeply nested and malformed requests: the right status, the
    process alive, and its memory.

    python benchmarks/serve_abuse.py [killed] [schema] [hostile]
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from serve_load import free_port, resident

KEY = "a-key-of-this-benchmark-only"
AUDIT = "rank,score,label,row,id,text,known_labels,verdict\n1,0.9,sea,4,,deep blue,sun,\n"


def save_models(folder: Path) -> None:
    import labelweave as lw
    from labelweave.text import TextClassifier

    train, _ = lw.load_dataset("yeast").split()
    lw.make("mlp", random_state=0).fit(train.X, train.Y).save(folder / "yeast")
    texts = ["sea and sun", "deep sea", "hot sun", "wet rain"] * 10
    labels = lw.as_labels([["sea", "sun"], ["sea"], ["sun"], ["rain"]] * 10)
    TextClassifier(random_state=0).fit(texts, labels).save(folder / "news")
    lw.make("xml0", encoder="tfidf", random_state=0).fit(texts, labels).save(folder / "tagger")
    (folder / "audit.csv").write_text(AUDIT)


class Service:
    """The command, started in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        words = ["serve", "yeast", "news", "tagger", "--review", "audit.csv", "--no-access-log"]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "labelweave", *words, "--port", str(self.port)],
            cwd=self.folder,
            env={**os.environ, "LABELWEAVE_API_KEY": KEY},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 180
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.2)
        raise SystemExit("the service did not start")

    def ask(self, path: str, body: object = None, method: str | None = None) -> tuple[int, bytes]:
        headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


def killed(service: Service, additions: int, kills: int) -> None:
    path = "/v1/models/tagger/labels"
    acknowledged: list[str] = []
    done = 0
    points = sorted(random.Random(0).sample(range(additions // 10, additions), kills))
    while done < additions:
        if points and done >= points[0]:
            points.pop(0)
            # In the middle of what is being done: some milliseconds from now.
            kill = (service.process.pid, signal.SIGKILL)
            threading.Timer(random.Random(done).uniform(0, 0.02), os.kill, kill).start()
        name = f"label number {done}"
        try:
            status, answer = service.ask(path, {"labels": [{"name": name, "description": "sea"}]})
        except (OSError, ConnectionError):
            service.process.wait(10)
            service.start()
            listed = json.loads(service.ask(f"{path}?limit=100000")[1])["labels"]
            there = {label["name"] for label in listed}
            missing = [name for name in acknowledged if name not in there]
            print(f"killed   after {len(acknowledged):5,} acknowledged: {len(missing)} missing")
            done += name in there  # written, but the word of it was lost
            continue
        if status != 200:
            raise SystemExit(f"addition {done} was answered {status}: {answer!r}")
        acknowledged.append(name)
        done += 1
    listed = json.loads(service.ask(f"{path}?limit=100000")[1])["labels"]
    missing = set(acknowledged) - {label["name"] for label in listed}
    print(
        f"killed   {len(acknowledged):,} additions acknowledged through {kills} kills, "
        f"{len(missing)} missing",
        flush=True,
    )


def schema(service: Service, cases: int) -> None:
    total = 0
    for seed, model in enumerate(("tagger", "yeast", "news")):
        config = f'[parameters]\n"path.model" = "{model}"\n"path.queue" = "audit"\n'
        (service.folder / "schemathesis.toml").write_text(config)
        command = [str(Path(sys.executable).parent / "schemathesis"), "run"]
        command += [f"{service.url}/v1/openapi.json", "-H", f"Authorization: Bearer {KEY}"]
        command += ["--checks", "not_a_server_error", "--phases", "examples,coverage,fuzzing"]
        command += ["--max-examples", str(cases // 40), "--seed", str(seed), "--no-color"]
        command += [
            "--suppress-health-check",
            "all",
            "--continue-on-failure",
            "--request-timeout",
            "60",
        ]
        result = subprocess.run(command, cwd=service.folder, capture_output=True, text=True)
        tail = result.stdout[result.stdout.rfind("SUMMARY") :]
        match = re.search(r"([\d,]+) generated", tail)
        if match is None:
            raise SystemExit(f"schemathesis said:\n{result.stdout[-3000:]}{result.stderr[-2000:]}")
        total += int(match[1].replace(",", ""))
        word = "no answer of 500 or more" if result.returncode == 0 else result.stdout[-3000:]
        print(f"schema   {model:7} {match[1]:>6} cases: {word}", flush=True)
    print(f"schema   {total:,} cases in all; ready: {service.ask('/v1/health/ready')[0]}")


def hostile(service: Service) -> None:
    address = "/v1/models/news/predict"
    service.ask(address, {"inputs": ["sea"]})
    before = resident(service.process.pid)
    head = f"POST {address} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

    def send(title: str, content: bytes, expected: str, *, repeat: bytes = b"", times: int = 0):
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as connection:
            try:
                connection.sendall(content)
                for _ in range(times):
                    connection.sendall(repeat)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # it does not listen to the end
            try:
                answer = connection.recv(4096)
            except OSError:
                answer = b""
        status = answer.split(b" ", 2)[1].decode() if answer.startswith(b"HTTP") else "closed"
        assert service.process.poll() is None, f"{title}: the process ended"
        memory = resident(service.process.pid)
        right = "as it should" if status in expected.split() else f"EXPECTED {expected}"
        print(f"hostile  {title:34} {status:7} {right:14} {memory:7.0f} MB", flush=True)

    def sized(body: bytes, length: int | None = None) -> bytes:
        return (
            f"{head}Content-Length: {len(body) if length is None else length}\r\n\r\n".encode()
            + body
        )

    million = b"x" * 2**20
    chunk = b"100000\r\n" + million + b"\r\n"
    send("1 TB announced", sized(b"{}", 2**40), "413")
    send("200 MB sent", sized(b"", 200 * 2**20), "413", repeat=million, times=200)
    chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n".encode()
    send("200 MB in chunks, no length", chunked, "413", repeat=chunk, times=200)
    send("a text of 15 MB", sized(b'{"inputs": ["' + 15 * million + b'"]}'), "413")
    send(
        "7 million empty inputs", sized(b'{"inputs": [' + b"[]," * (5 * 2**20) + b"[]]}"), "413 422"
    )
    send("8 million brackets", sized(b"[" * (8 * 2**20)), "422")
    send("a number of a million digits", sized(b'{"inputs": [[1' + b"0" * 2**20 + b"]]}"), "422")
    send("truncated", sized(b'{"inputs": ["sea', 100), "closed 400")
    send("no JSON", sized(b"\xff\xfe\x00" * 1000), "422")
    send("lone surrogate", sized(b'{"inputs": ["\\ud800"]}'), "422 200")
    send(
        "a header of 1 MB",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + million + b"\r\n\r\n",
        "200 400 431",
    )
    send("no HTTP", b"\x16\x03\x01\x02\x00" * 100, "400 closed")
    waiting = []
    for _ in range(300):  # that send nothing more
        one = socket.create_connection(("127.0.0.1", service.port), timeout=60)
        one.sendall(sized(b"{", 2**20))
        waiting.append(one)
    status, _ = service.ask(address, {"inputs": ["sea"]})
    print(f"hostile  beside 300 requests that never arrive: {status}")
    for one in waiting:
        one.close()
    after = resident(service.process.pid)
    print(f"hostile  memory {before:.0f} MB before, {after:.0f} MB after", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["killed", "schema", "hostile"])
    parser.add_argument("--additions", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--cases", type=int, default=10_000)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as folder:
        save_models(Path(folder))
        service = Service(Path(folder))
        try:
            if "killed" in arguments.what:
                killed(service, arguments.additions, arguments.kills)
            if "schema" in arguments.what:
                schema(service, arguments.cases)
            if "hostile" in arguments.what:
                hostile(service)
        finally:
            service.stop()


if __name__ == "__main__":
    main()

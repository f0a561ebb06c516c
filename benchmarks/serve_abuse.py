"""What `labelweave serve` withstands: kills, schemathesis, hostile requests, crashing models.

Real models behind the real command, in a process of their own: XML0 with an encoder of TF-IDF
weights (its labels can change), MLP on yeast, binary relevance over texts.

killed
    1,000 label additions; the process is killed (SIGKILL) at a random moment and started again,
    until all are through. Every acknowledged addition must be there.
schema
    10,000 cases of schemathesis against the OpenAPI document: no answer of 500 or more.
hostile
    Oversized, endless, truncated, deeply nested and malformed requests and thousands of
    connections: the right status, the process alive, its memory, and the slowest answer of the
    health check meanwhile.
images
    Small files of many pixels, from many clients at once: the same, and what is kept on disk.
folders
    The folder of a served model is changed at random, as `make fuzz-folders` does, and loaded
    again: no answer of 500, and the service goes on answering.
crashes
    The process of one model is killed again and again: are requests to the other answered?

In hostile, images and folders the process of the service is watched (`serve_watched.py`): code from
elsewhere, processes, connections, and files opened outside its folder are counted.

    python benchmarks/serve_abuse.py [killed] [schema] [hostile] [images] [folders] [crashes]
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

import numpy as np
from serve_attacks import (
    body_attacks,
    connection_attacks,
    family,
    image_attacks,
    resident,
    run_attacks,
    watching,
)
from serve_load import free_port

KEY = "a-key-of-this-benchmark-only"
AUDIT = "rank,score,label,row,id,text,known_labels,verdict\n1,0.9,sea,4,,deep blue,sun,\n"


def save_models(folder: Path) -> None:
    import labelweave as lw
    from labelweave.images import ImageClassifier, ImageEncoder
    from labelweave.text import TextClassifier

    train, _ = lw.load_dataset("yeast").split()
    lw.make("mlp", random_state=0).fit(train.X, train.Y).save(folder / "yeast")
    texts = ["sea and sun", "deep sea", "hot sun", "wet rain"] * 10
    labels = lw.as_labels([["sea", "sun"], ["sea"], ["sun"], ["rain"]] * 10)
    TextClassifier(random_state=0).fit(texts, labels).save(folder / "news")
    lw.make("xml0", encoder="tfidf", random_state=0).fit(texts, labels).save(folder / "tagger")
    (folder / "audit.csv").write_text(AUDIT)
    rng = np.random.default_rng(0)
    photos = list(rng.integers(0, 256, (40, 64, 64, 3), dtype=np.uint8))
    shades = lw.as_labels([["dark"], ["bright"], ["dark", "bright"], ["grey"]] * 10)
    encoder = ImageEncoder("resnet18", weights="random", cache=False)
    ImageClassifier(lw.make("br"), encoder=encoder).fit(photos, shades).save(folder / "photos")


class Service:
    """The command, started in a folder."""

    def __init__(self, folder: Path, *words: str, watched: bool = False) -> None:
        self.folder, self.port, self.words = folder, free_port(), words
        self.program = ["-m", "labelweave"]
        if watched:
            self.log = Path(tempfile.mkdtemp(dir=folder)) / "watched"
            script = Path(__file__).with_name("serve_watched.py")
            self.program = [str(script), str(self.log), str(folder)]
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        words = ["serve", *self.words, "--no-access-log", "--port", str(self.port)]
        self.process = subprocess.Popen(
            [sys.executable, *self.program, *words],
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

    def watch(self) -> None:
        """Note from now on what the process opens, runs and connects to."""
        Path(f"{self.log}.start").touch()

    def print_watched(self, title: str) -> None:
        """Print how much of it was outside the folder of the service."""
        lines = self.log.read_text().splitlines()
        kinds = [line.partition(" ")[0] for line in lines]
        started = ("subprocess.", "os.system", "os.exec", "os.posix", "os.spawn", "os.fork")
        code = ("code", "pickle.find_class", "marshal.loads")
        counts = {
            "code runs": sum(kind in code for kind in kinds),
            "processes": sum(kind.startswith(started) for kind in kinds),
            "connections": sum(kind.startswith("socket.") for kind in kinds),
        }
        counts["files outside"] = len(lines) - sum(counts.values())
        print(f"{title:8} " + ", ".join(f"{n} {what}" for what, n in counts.items()), flush=True)
        for line in sorted(set(lines))[:20]:
            print(f"{title:8}   {line}")

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


def hostile(folder: Path) -> None:
    """Attack a service of one model of texts, with the model in the process of the service."""
    service = Service(folder, "news", watched=True)
    service.ask("/v1/models/news/predict", {"inputs": ["sea"]})
    service.watch()
    print(f"hostile  {resident(service.process.pid):.0f} MB with the model loaded")
    try:
        for title, attacks in (("hostile", body_attacks()), ("connect", connection_attacks())):
            run_attacks(title, service.process.pid, service.port, attacks, most=1000)
        print(f"hostile  {resident(service.process.pid):.0f} MB after all of them", flush=True)
        service.print_watched("hostile")
    finally:
        service.stop()


def images(folder: Path) -> None:
    """Attack a service of a model of images; nothing may be kept on disk."""
    service = Service(folder, "photos", watched=True)
    service.watch()
    cache = Path(os.environ["LABELWEAVE_CACHE"])
    before = n_files(folder, cache)
    try:
        run_attacks("images", service.process.pid, service.port, image_attacks(), most=1500)
        added = n_files(folder, cache) - before - 2  # SQLite's log and its index
        print(f"images   {max(added, 0)} files written", flush=True)
        service.print_watched("images")
    finally:
        service.stop()


def folders(folder: Path, n_changes: int) -> None:
    """Change the folder of a served model again and again, and load it."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "fuzz"))
    from folder_mutations import copied, mutate

    served = copied(folder / "news", folder / "changed")
    service = Service(folder, "changed", watched=True)
    rows = {"inputs": ["sea and sun"], "scores": True}
    statuses: dict[str, dict[int, int]] = {"reload": {}, "predict": {}}
    try:
        service.ask("/v1/models/changed/predict", rows)
        service.watch()
        with watching(service.process.pid, service.port) as seen:
            for k in range(n_changes):
                mutate(copied(folder / "news", served), np.random.default_rng(k))
                for what, body in (("reload", {}), ("predict", rows)):
                    status, _ = service.ask(f"/v1/models/changed/{what}", body)
                    statuses[what][status] = statuses[what].get(status, 0) + 1
        for what, counts in statuses.items():
            told = ", ".join(f"{n} x {status}" for status, n in sorted(counts.items()))
            print(f"folders  {n_changes} changed folders, {what}: {told}", flush=True)
        is_fault = service.process.poll() is not None or any(500 in c for c in statuses.values())
        print(
            f"folders  slowest health check {seen.slowest:.2f} s, most memory "
            f"{seen.memory:.0f} MB, {seen.failed} failed{'  FAULT' if is_fault else ''}",
            flush=True,
        )
        service.print_watched("folders")
    finally:
        service.stop()


def n_files(*folders: Path) -> int:
    return sum(path.is_file() for folder in folders for path in folder.rglob("*"))


def crashes(folder: Path, n_crashes: int) -> None:
    """Kill the process of one model again and again while another one is asked."""
    service = Service(folder, "news", "yeast")
    row = [0.0] * 103
    try:
        service.ask("/v1/models/yeast/predict", {"inputs": [row]})
        service.ask("/v1/models/news/predict", {"inputs": ["sea"]})
        asked = failed = 0
        for _ in range(n_crashes):
            pids = family(service.process.pid)[1:]
            words = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in pids}
            os.kill(next(pid for pid in pids if b"\0news\0" in words[pid]), signal.SIGKILL)
            started = time.monotonic()
            status = 0
            while status != 200:
                failed += service.ask("/v1/models/yeast/predict", {"inputs": [row]})[0] != 200
                asked += 1
                status, _ = service.ask("/v1/models/news/predict", {"inputs": ["sea"]})
            print(f"crashes  answers again after {time.monotonic() - started:.1f} s", flush=True)
        print(
            f"crashes  {n_crashes} of one model: {failed} of {asked} requests to the other failed"
        )
    finally:
        service.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = ["killed", "schema", "hostile", "images", "folders", "crashes"]
    parser.add_argument("what", nargs="*", default=parts)
    parser.add_argument("--crashes", type=int, default=3)
    parser.add_argument("--changes", type=int, default=500)
    parser.add_argument("--additions", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--cases", type=int, default=10_000)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["LABELWEAVE_CACHE"] = str(folder / "cache")
        save_models(folder)
        if {"killed", "schema"} & set(arguments.what):
            service = Service(folder, "yeast", "news", "tagger", "--review", "audit.csv")
            try:
                if "killed" in arguments.what:
                    killed(service, arguments.additions, arguments.kills)
                if "schema" in arguments.what:
                    schema(service, arguments.cases)
            finally:
                service.stop()
        if "hostile" in arguments.what:
            hostile(folder)
        if "images" in arguments.what:
            images(folder)
        if "folders" in arguments.what:
            folders(folder, arguments.changes)
        if "crashes" in arguments.what:
            crashes(folder, arguments.crashes)


if __name__ == "__main__":
    main()

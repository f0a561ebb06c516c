"""Throughput, latency and memory of `labelweave serve`, against the obvious endpoint.

The obvious endpoint is FastAPI's own example: a function that takes a pydantic body and calls
`predict_proba` for each request, on the same uvicorn. Both run as processes of their own; this
process sends single-row requests over 64 connections that stay open. Rounds alternate, the
ratio is that of the medians. On a machine that does other work too, the processor time of the
servers says more than the clock; its ratio is printed as well.

vectors
    MLP on yeast.
texts
    Binary relevance over TF-IDF weights on a set of texts.
processes
    The vector model in a process of its own (`--model-processes`), and the service with two
    workers (`--workers 2`), each against the service in one process.
memory
    Resident memory of the service over 50,000 requests of the vector model.

    LABELWEAVE_DATA=... python benchmarks/serve_load.py [vectors] [texts] [processes] [memory]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from serve_attacks import family, resident

OBVIOUS = """
import sys
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
import torch
import labelweave as lw

torch.set_num_threads(1)
model = lw.load(sys.argv[1])
app = FastAPI()

class Body(BaseModel):
    inputs: list[{kind}]

@app.post("/predict")
def predict(body: Body):
    return {{"probabilities": model.predict_proba(body.inputs).tolist()}}

uvicorn.run(app, port=int(sys.argv[2]), log_level="warning", access_log=False)
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """A process that serves a model, and the request to send to it."""

    def __init__(self, command: list[str], port: int, path: str, folder: str) -> None:
        self.port, self.path = port, path
        self.process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                raise SystemExit(f"{command} ended")
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                return
            except OSError:
                time.sleep(0.2)
        raise SystemExit("the server did not start")

    def request(self, row: object) -> bytes:
        body = json.dumps({"inputs": [row]}).encode()
        head = (
            f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    def memory(self) -> float:
        """Resident megabytes."""
        return resident(self.process.pid)

    def processor(self) -> float:
        """Processor seconds so far, of all its processes."""
        ticks = 0
        for pid in family(self.process.pid):
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(60)


async def load(server: Server, rows: list, n_requests: int, width: int) -> dict[str, float]:
    """Send requests over `width` connections; throughput, latencies and failures."""
    requests = [server.request(row) for row in rows]
    seconds: list[float] = []
    failed = 0
    numbers = iter(range(n_requests))

    async def client() -> None:
        nonlocal failed
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        for i in numbers:
            start = time.perf_counter()
            writer.write(requests[i % len(requests)])
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            seconds.append(time.perf_counter() - start)
            failed += not head.startswith(b"HTTP/1.1 200")
        writer.close()

    start, busy = time.perf_counter(), server.processor()
    await asyncio.gather(*(client() for _ in range(width)))
    elapsed = time.perf_counter() - start
    p50, p99 = np.percentile(seconds, [50, 99])
    cost = (server.processor() - busy) / n_requests
    return {"rate": n_requests / elapsed, "p50": p50, "p99": p99, "failed": failed, "cost": cost}


def start_both(folder: str, name: str, kind: str) -> tuple[Server, Server]:
    obvious, ours = free_port(), free_port()
    code = OBVIOUS.format(kind=kind)
    return (
        Server([sys.executable, "-c", code, name, str(obvious)], obvious, "/predict", folder),
        Server(serve_command(name, ours), ours, f"/v1/models/{name}/predict", folder),
    )


def start_ways(folder: str, name: str, option: list[str]) -> tuple[Server, Server]:
    one, other = free_port(), free_port()
    path = f"/v1/models/{name}/predict"
    return (
        Server(serve_command(name, one), one, path, folder),
        Server([*serve_command(name, other), *option], other, path, folder),
    )


def serve_command(name: str, port: int) -> list[str]:
    words = ["serve", name, "--port", str(port), "--preload", "--no-access-log"]
    return [sys.executable, "-m", "labelweave", *words]


def compare(
    title: str,
    servers: tuple[Server, Server],
    rows: list,
    arguments: object,
    names: tuple[str, str] = ("obvious", "labelweave"),
) -> None:
    measured: list[list[dict[str, float]]] = [[], []]
    for server in servers:  # warm
        asyncio.run(load(server, rows, 200, arguments.width))
    for _ in range(arguments.rounds):
        for results, server in zip(measured, servers, strict=True):
            results.append(asyncio.run(load(server, rows, arguments.requests, arguments.width)))
    rates, costs = [], []
    for name, results in zip(names, measured, strict=True):
        rates.append(statistics.median(r["rate"] for r in results))
        p50 = statistics.median(r["p50"] for r in results)
        p99 = statistics.median(r["p99"] for r in results)
        failed = sum(r["failed"] for r in results)
        costs.append(statistics.median(r["cost"] for r in results))
        spread = ", ".join(f"{r['rate']:.0f}" for r in results)
        print(
            f"{title:8} {name:10} {rates[-1]:7.0f} requests/s ({spread})  p50 {1000 * p50:6.1f} ms"
            f"  p99 {1000 * p99:6.1f} ms  p99/p50 {p99 / p50:4.1f}  failed {failed}"
            f"  {1000 * costs[-1]:.2f} processor ms a request",
            flush=True,
        )
    print(
        f"{title:8} ratio {rates[1] / rates[0]:.1f}, by processor time of the server "
        f"{costs[0] / costs[1]:.1f}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["vectors", "texts", "processes", "memory"])
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--text-data", default="aapd-test")
    parser.add_argument("--memory-requests", type=int, default=50_000)
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")

    import labelweave as lw
    from labelweave.text import TextClassifier

    with tempfile.TemporaryDirectory() as folder:
        if {"vectors", "processes", "memory"} & set(arguments.what):
            train, test = lw.load_dataset("yeast").split()
            lw.make("mlp", random_state=0).fit(train.X, train.Y).save(f"{folder}/yeast")
            rows = np.asarray(test.X)[:200].tolist()
        if "vectors" in arguments.what:
            servers = start_both(folder, "yeast", "list[float]")
            compare("vectors", servers, rows, arguments)
            for server in servers:
                server.stop()
        if "texts" in arguments.what:
            data = lw.load_dataset(arguments.text_data)
            TextClassifier(random_state=0).fit(data.X, data.Y).save(f"{folder}/texts")
            servers = start_both(folder, "texts", "str")
            compare("texts", servers, list(data.X[:200]), arguments)
            for server in servers:
                server.stop()
        if "processes" in arguments.what:
            for option in (["--model-processes"], ["--workers", "2"]):
                servers = start_ways(folder, "yeast", option)
                names = ("one process", " ".join(option)[2:])
                compare("ways", servers, rows, arguments, names)
                for server in servers:
                    server.stop()
        if "memory" in arguments.what:
            port = free_port()
            server = Server(serve_command("yeast", port), port, "/v1/models/yeast/predict", folder)
            parts = 10
            for part in range(parts):
                measured = asyncio.run(
                    load(server, rows, arguments.memory_requests // parts, arguments.width)
                )
                sent = (part + 1) * arguments.memory_requests // parts
                print(
                    f"memory   {sent:7,} requests  {server.memory():7.1f} MB  "
                    f"failed {measured['failed']}",
                    flush=True,
                )
            server.stop()


if __name__ == "__main__":
    main()

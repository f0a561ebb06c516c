"""Several processes at one address: they are replaced when they end, and end with the first."""

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from serving import KEY, wait_until
from worker_work import answer_with_pid, do_not_start

from labelweave.exceptions import InputError, LabelweaveError
from labelweave.serve.app import _listen
from labelweave.serve.settings import Settings
from labelweave.serve.worker_processes import WorkerProcesses


@contextmanager
def running_workers(n_workers, work):
    workers = WorkerProcesses(n_workers, work, restart_delay=0.01, stop_seconds=30)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=workers.run, args=[listening])
        thread.start()
        try:
            yield workers, listening.getsockname()
        finally:
            workers.stop()
            thread.join()


def ask(address):
    with socket.create_connection(address) as connection:
        connection.settimeout(300)
        return int(connection.recv(100) or 0)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")  # one that has ended may still wait for its parent
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_worker_that_ends_is_replaced_and_a_stop_ends_all():
    with running_workers(2, answer_with_pid) as (workers, address):
        pids = set()
        wait_until(lambda: pids.add(ask(address)) or len(pids) == 2)
        killed = min(pids)
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: killed not in workers.pids and None not in workers.pids)
        wait_until(lambda: ask(address) in set(workers.pids) - pids)
        last = set(workers.pids)
    assert not any(map(is_running, pids | last))


def test_workers_that_cannot_start_end_the_service():
    workers = WorkerProcesses(2, do_not_start, restart_delay=0.01, stop_seconds=30)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        pytest.raises(LabelweaveError, match="could not start: the log has the reason"),
    ):
        workers.run(listening)
    assert not any(map(is_running, filter(None, workers.pids)))


def test_workers_end_with_the_first_process():
    script = Path(__file__).with_name("worker_work.py")
    with subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE) as first:
        pids = [int(pid) for pid in first.stdout.readline().split()]
        assert len(pids) == 2
        assert all(map(is_running, pids))
        first.kill()
    wait_until(lambda: not any(map(is_running, pids)))


def test_an_address_in_use_gets_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1, port {port}"):
            _listen(Settings(port=port))


def test_the_compiler_of_torch_makes_no_folder(tmp_path):
    """Encoders of texts import it."""
    code = "from labelweave.serve.app import _set_up_process as s; s(False); import torch._dynamo"
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    environment.pop("TORCHINDUCTOR_CACHE_DIR", None)
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    assert list(tmp_path.iterdir()) == []


def test_workers_of_the_command_share_the_database(vectors_folder, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    words = ["serve", str(vectors_folder), "--port", str(port), "--workers", "2"]
    with subprocess.Popen(
        [sys.executable, "-m", "labelweave", *words],
        cwd=tmp_path,
        env={**os.environ, "LABELWEAVE_API_KEY": KEY},
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    ) as service:
        seen = set()

        def both_answer():
            try:  # a connection of its own, which any of them may accept
                answer = httpx.get(f"http://127.0.0.1:{port}/v1/health/ready", timeout=300)
            except httpx.HTTPError:
                assert service.poll() is None
                return False
            assert answer.status_code == 200
            seen.add(answer.headers["x-request-id"][:8])  # random, per process
            return len(seen) == 2

        wait_until(both_answer)
        predict = f"http://127.0.0.1:{port}/v1/models/{vectors_folder.name}/predict"
        answer = httpx.post(predict, json={"inputs": [[1, 2, 3]]}, timeout=300)
        assert answer.status_code == 200
        reload = f"http://127.0.0.1:{port}/v1/models/{vectors_folder.name}/reload"
        key = {"Authorization": f"Bearer {KEY}"}
        assert httpx.post(reload, headers=key, timeout=300).status_code == 204  # by either
        service.terminate()
        assert service.wait(300) == 0
    assert (tmp_path / "labelweave-serve.sqlite").exists()

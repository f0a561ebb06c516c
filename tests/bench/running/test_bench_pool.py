"""Workers of the bench end with the process that started them."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "endless_run.py"


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    status = Path(f"/proc/{pid}/stat")  # one that has ended may still wait for its parent
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not tell that a parent has ended")
@pytest.mark.parametrize(("way", "n_workers"), [("pool", 2), ("alone", 1)])
def test_workers_end_when_the_run_is_killed(tmp_path, way, n_workers):
    with subprocess.Popen([sys.executable, str(SCRIPT), str(tmp_path), way]) as run:
        while len(list(tmp_path.iterdir())) < n_workers:
            assert run.poll() is None
            time.sleep(0.05)
        run.kill()
    pids = [int(path.name) for path in tmp_path.iterdir()]
    while any(map(is_running, pids)):  # the time limit of a test ends it
        time.sleep(0.05)

"""Run a suite in children that are killed at random moments, then once to its end.

Usage: killed_run.py FOLDER OUT KILLS. A child is a fork of this process, which has run the suite
once for one seed: what is imported and read then need not be again.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from bench_data import small_suite

from labelweave.bench.running.pool import Pool
from labelweave.bench.running.runner import run_suite


def main(folder: str, out: str, kills: int) -> None:
    suite = small_suite(Path(folder), seeds=range(8))
    run_suite(small_suite(Path(folder), seeds=[99]), f"{out}-first", pool=Pool(1))
    cells = Path(out) / "cells"

    def finished() -> list[Path]:
        return list(cells.glob("[!.]*.json"))  # a file half written begins with a dot

    chance = random.Random(0)
    killed = 0
    for number in range(kills):
        n_before = len(finished())
        child = os.fork()
        if child == 0:
            run_suite(suite, out, pool=Pool(1))
            os._exit(0)
        # Every other child lives at least until it has finished a cell.
        give_up = time.monotonic() + 10
        while number % 2 and time.monotonic() < give_up:
            if len(finished()) > n_before or n_before == 64:
                break
            time.sleep(0.001)
        time.sleep(chance.uniform(0, 0.08))
        os.kill(child, signal.SIGKILL)
        killed += os.WIFSIGNALED(os.waitpid(child, 0)[1])
    stamps = {path.name: path.stat().st_mtime_ns for path in finished()}
    result = run_suite(suite, out, pool=Pool(1))
    kept = sum((cells / name).stat().st_mtime_ns == stamp for name, stamp in stamps.items())
    print(killed, len(stamps), kept, result.n_run, len(result.records))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))

"""Run a suite in children that are killed as they write, then once to its end: FOLDER OUT.

A child is a fork of this process, which has run the suite for another seed: everything is
imported and read already. A child is killed just before or just after it has put the file of its
n-th cell in place, so that nothing depends on the speed of the machine.
"""

import os
import signal
import sys
from pathlib import Path

from bench_data import small_suite

from labelweave.bench.running.pool import Pool
from labelweave.bench.running.runner import run_suite

MOMENTS = [(number, before) for number in (1, 2, 3, 4) for before in (True, False)]


def main(folder: str, out: str) -> None:
    suite = small_suite(Path(folder), seeds=range(3))
    run_suite(small_suite(Path(folder), seeds=[99]), f"{out}-first", pool=Pool(1))
    cells = Path(out) / "cells"
    killed = sum(is_killed(suite, out, *moment) for moment in MOMENTS)
    # A file that is half written begins with a dot.
    stamps = {path.name: path.stat().st_mtime_ns for path in cells.glob("[!.]*.json")}
    result = run_suite(suite, out, pool=Pool(1))
    kept = sum((cells / name).stat().st_mtime_ns == stamp for name, stamp in stamps.items())
    print(killed, len(stamps), kept, result.n_run, len(result.records))


def is_killed(suite, out: str, number: int, before: bool) -> bool:
    """Whether a child that runs the suite is killed at this moment."""
    child = os.fork()
    if child == 0:
        replace, written = os.replace, 0

        def counted(source, target) -> None:
            nonlocal written
            written += Path(target).parent.name == "cells"
            if written == number and before:
                os.kill(os.getpid(), signal.SIGKILL)
            replace(source, target)
            if written == number:
                os.kill(os.getpid(), signal.SIGKILL)

        os.replace = counted
        run_suite(suite, out, pool=Pool(1))
        os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

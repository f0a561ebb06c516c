"""Run cells that never end: FOLDER pool|alone. Each writes a file named after its process."""

import os
import sys
import time
from pathlib import Path

from labelweave.bench.running.pool import Pool, run_alone


def never_end(folder: str) -> None:
    Path(folder, str(os.getpid())).touch()
    time.sleep(100_000)


if __name__ == "__main__":
    if sys.argv[2] == "pool":
        list(Pool(2).map(never_end, [(sys.argv[1],)] * 2))
    else:
        run_alone(never_end, sys.argv[1])

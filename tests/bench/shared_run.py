"""Run the small suite in two processes at once that share a folder: FOLDER OUT.

Both are forks of this process, which has run the suite for another seed.
"""

import os
import sys
from pathlib import Path

from bench_data import small_suite

from labelweave.bench.running.pool import Pool
from labelweave.bench.running.runner import run_suite

if __name__ == "__main__":
    folder, out = Path(sys.argv[1]), sys.argv[2]
    run_suite(small_suite(folder, seeds=[99]), f"{out}-first", pool=Pool(1))
    children = []
    for _ in range(2):
        if (child := os.fork()) == 0:
            result = run_suite(small_suite(folder, seeds=range(4)), out, pool=Pool(1))
            print(result.n_run, len(result.records), len(result.failed), flush=True)
            os._exit(0)
        children.append(child)
    sys.exit(any(os.waitpid(child, 0)[1] for child in children))

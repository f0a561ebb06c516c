"""Run the small suite into a folder that another process may use too: FOLDER OUT."""

import sys
from pathlib import Path

from bench_data import small_suite

from labelweave.bench.running.pool import Pool
from labelweave.bench.running.runner import run_suite

if __name__ == "__main__":
    suite = small_suite(Path(sys.argv[1]), seeds=range(4))
    result = run_suite(suite, sys.argv[2], pool=Pool(1))
    print(result.n_run, len(result.records), len(result.failed))

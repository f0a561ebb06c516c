"""What the bench itself costs: overhead, speed-up of two workers, and a large comparison.

overhead
    A suite through `run_suite` (one process) against the same splits, fits and scores in a plain
    loop; processor seconds, median of alternating rounds.
speed-up
    The same suite in one process and in two: wall seconds, with workers that run already and
    with their start; and, for a machine that does other work too, processor seconds.
comparison
    `labelweave bench compare` as a command, on ten thousand synthetic cells; wall and processor
    seconds.

    LABELWEAVE_DATA=... python benchmarks/bench_runner.py
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from labelweave.bench.kinds import kind_module
from labelweave.bench.running.cell_data import load
from labelweave.bench.running.plan import Cell, all_cells, make_plan
from labelweave.bench.running.pool import Pool
from labelweave.bench.running.runner import prepare, run_suite
from labelweave.bench.running.worker import failed_record
from labelweave.bench.storing.store import Store
from labelweave.bench.suite import DataEntry, MethodEntry, Suite, load_suite


def small_cells(n_seeds: int) -> Suite:
    """Cheap methods on small data sets: a fraction of a second a cell."""
    base = load_suite("c-gmvae-1")
    return replace(
        base,
        name="small",
        data=(DataEntry("yeast"), DataEntry("genbase"), DataEntry("medical")),
        methods=(
            MethodEntry("BR", "br"),
            MethodEntry("MLP", "mlp", settings={"epochs": 20, "hidden": [64]}),
        ),
        seeds=tuple(range(n_seeds)),
        protocols=base.protocols[:1],
    )


def in_a_loop(cells: tuple[Cell, ...]) -> None:
    """Split, fit and score each cell, and keep nothing."""
    for cell in cells:
        kind_module(cell.kind).run(cell, load(cell.data))


def overhead(suite: Suite, rounds: int) -> None:
    cells = prepare(make_plan(suite)).cells
    in_a_loop(cells[:4])  # imports
    spent: dict[str, list[float]] = {"loop": [], "runner": []}
    for number in range(2 * rounds):
        what = ("loop", "runner")[number % 2]
        with tempfile.TemporaryDirectory() as folder:
            started = time.process_time()
            if what == "loop":
                in_a_loop(cells)
            else:
                run_suite(suite, Path(folder) / "out", pool=Pool(1))
            spent[what].append(time.process_time() - started)
    loop, runner = (statistics.median(spent[what]) for what in ("loop", "runner"))
    print(
        f"overhead: {len(cells)} cells of {loop / len(cells):.3f} CPU s; loop {loop:.2f}, "
        f"runner {runner:.2f} CPU s: {runner / loop - 1:+.1%}",
        flush=True,
    )


def speed_up(suite: Suite, rounds: int) -> None:
    wall: dict[str, list[float]] = {"one": [], "two": []}
    spent: dict[str, list[float]] = {"one": [], "two": []}
    for number in range(rounds + 1):
        for what, pool in (("two", Pool(2)), ("one", Pool(1))):
            with tempfile.TemporaryDirectory() as folder:
                started, cpu = time.perf_counter(), time.process_time()
                result = run_suite(suite, Path(folder) / "out", pool=pool)
                wall[what].append(time.perf_counter() - started)
                cpu = time.process_time() - cpu
            # The parent's own seconds, plus those of the workers, which run side by side.
            cells = sum(record["seconds"]["cpu"] for record in result.records)
            spent[what].append(cpu if what == "one" else cpu + cells / 2)
            if number == 0 and what == "two":
                first = wall[what][0]
    one, two = (statistics.median(wall[what][1:]) for what in ("one", "two"))
    print(
        f"speed-up: one process {one:.1f} s, two {two:.1f} s: {one / two:.2f}x "
        f"({one / first:.2f}x with the start of the workers)"
    )
    one, two = (statistics.median(spent[what][1:]) for what in ("one", "two"))
    print(f"by processor seconds, as on idle cores: {one:.1f} / {two:.1f}: {one / two:.2f}x")


def large_comparison(n_cells: int) -> None:
    base = load_suite("c-gmvae-1")
    n_seeds = -(-n_cells // (len(base.data) * len(base.methods) * len(base.protocols)))
    cells = all_cells(replace(base, seeds=tuple(range(n_seeds))))[:n_cells]
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "out")
        store.create()
        for cell in cells:
            record = failed_record(cell, "", "")
            scores = {name: float(rng.random()) for name in ("f1_example", "f1_micro", "map")}
            history = {"epoch": list(range(50)), "loss": rng.random(50).tolist()}
            done = {**record, "error": None, "scores": scores, "history": history}
            store.path(cell.name).write_text(json.dumps(done))
        command = [sys.executable, "-m", "labelweave", "bench", "compare", base.name, "--quiet"]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        started = time.perf_counter()
        subprocess.run(
            [*command, "--results", str(store.folder)], check=True, stdout=subprocess.DEVNULL
        )
        wall = time.perf_counter() - started
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(f"compare {len(cells)} cells: {wall:.2f} s, {spent:.2f} CPU s")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cells", type=int, default=10_000)
    parser.add_argument("--only", choices=["overhead", "speed-up", "comparison"])
    options = parser.parse_args()
    suite = small_cells(options.seeds)
    if options.only in (None, "overhead"):
        overhead(suite, options.rounds)
    if options.only in (None, "speed-up"):
        speed_up(suite, options.rounds)
    if options.only in (None, "comparison"):
        large_comparison(options.cells)


if __name__ == "__main__":
    main()

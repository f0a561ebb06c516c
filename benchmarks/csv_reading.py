"""Reading CSV files: labelweave against pandas, in one run.

    python benchmarks/csv_reading.py

Three tables are written to a temporary folder: numbers (13 MB), numbers in many columns, and mixed
columns (texts with line feeds, categories, dates, numbers, blanks). labelweave ends with features
and labels, pandas with a DataFrame. Seconds are CPU seconds, the least of several alternate runs.
"""

from __future__ import annotations

import csv
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import labelweave as lw

RUNS = 7


def write_numbers(path: Path, rows: int, columns: int) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(rows, columns)), (rng.random((rows, 10)) < 0.2).astype(int)
    names = [*(f"f{j}" for j in range(columns)), *(f"is_{j}" for j in range(10))]
    with path.open("w") as file:
        file.write(",".join(names) + "\n")
        for x, y in zip(X, Y, strict=True):
            file.write(",".join([*(f"{v:.6f}" for v in x), *map(str, y)]) + "\n")


def write_mixed(path: Path, rows: int) -> None:
    rng = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(500)])
    names = ["id", "title", "price", "brand", "day", *(f"n{j}" for j in range(10))]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, *(f"is_{j}" for j in range(6))])
        for i in range(rows):
            title = " ".join(rng.choice(words, 6)) + (', "so"\nnext' if i % 7 == 0 else "")
            price = "" if i % 9 == 0 else f"{100 * rng.random():.2f}"
            day = f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}"
            numbers = [f"{v:.5f}" for v in rng.normal(size=10)]
            labels = rng.choice(["1", "0", ""], 6)
            writer.writerow(
                [f"r{i}", title, price, f"brand{rng.integers(40)}", day, *numbers, *labels]
            )


def least_seconds(*actions: Callable[[], object]) -> list[float]:
    seconds = [np.inf] * len(actions)
    for _ in range(RUNS):
        for k, action in enumerate(actions):
            start = time.process_time()
            action()
            seconds[k] = min(seconds[k], time.process_time() - start)
    return seconds


def main() -> None:
    print(f"{'table':<10} {'MB':>5} {'pandas s':>9} {'labelweave s':>13} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder) / f"{name}.csv" for name in ("numbers", "wide", "mixed")}
        write_numbers(paths["numbers"], rows=22_000, columns=60)
        write_numbers(paths["wide"], rows=300, columns=5000)
        write_mixed(paths["mixed"], rows=60_000)
        for name, path in paths.items():
            pandas_s, ours_s = least_seconds(
                lambda path=path: pd.read_csv(path),
                lambda path=path: lw.read_dataset(path, labels="is_*"),
            )
            size = path.stat().st_size / 1e6
            ratio = ours_s / pandas_s
            print(f"{name:<10} {size:>5.1f} {pandas_s:>9.3f} {ours_s:>13.3f} {ratio:>5.2f}x")


if __name__ == "__main__":
    main()

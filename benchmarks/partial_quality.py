"""Quality of methods for partial labels: how much of the gap to full annotation they close.

For each data set, scenario and seed: the official split (or a random one); positives of the
training part are hidden by chance (a share is kept, or a single one a row); a fifth of its rows
is for early stopping, estimates and thresholds, **annotated just as partially**; the test part is
scored once, with its full labels. Methods stand on the same network, `mlp`, with defaults. Full
annotation means the training part and its validation rows; there the epoch is chosen by mean
average precision, which full labels allow.

    gap closed = (mAP of the method - mAP of assume-negative)
               / (mAP with full annotation - mAP of assume-negative)

Each run is one small JSON file in the folder given, and is not run twice: the script may be
stopped and started again, and a run counts only for the code that made it (delete the folder
after a change). Run it with, say,

    LABELWEAVE_DATA=... python benchmarks/partial_quality.py cells --datasets scene yeast \\
        --scenarios single 0.25 --methods cls wan --seeds 3
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

import labelweave as lw
from labelweave.data.scenarios import hide_positives, keep_single_positive
from labelweave.data.splits import stratified_holdout
from labelweave.files import atomic_write_text
from labelweave.metrics import get_metric

SETS = (
    "scene", "yeast", "tmc2007-500", "delicious", "bibtex", "corel5k", "mirflickr25k-tags",
    "mediamill-2500",
)  # fmt: skip
SCENARIOS = ("single", "0.25", "0.5", "0.75")
FULL, BOTTOM = "full", "an"
METRICS = ("map", "cf1", "of1")


def observed(Y: lw.LabelMatrix, scenario: str, seed: int) -> lw.LabelMatrix:
    if scenario == "single":
        return keep_single_positive(Y, random_state=seed).Y
    return hide_positives(Y, 1 - float(scenario), random_state=seed).Y


def run(name: str, scenario: str, method: str, seed: int, most_rows: int) -> dict[str, Any]:
    """Scores of one fit on the test part."""
    train, test = lw.load_dataset(name).split()
    if len(train.Y) > most_rows:
        train = train[np.random.default_rng(seed).permutation(len(train.Y))[:most_rows]]
    Y = train.Y if method == FULL else observed(train.Y, scenario, seed)
    rest, held = stratified_holdout(Y, 0.2, random_state=seed)
    id, _, settings = method.partition("?")
    if id == FULL:
        model = lw.make(BOTTOM, validation="clean", random_state=seed)
    else:
        model = lw.make(id, random_state=seed)
    if settings:
        model.set_params(**json.loads(settings))
    started = time.process_time()
    model.fit(train.X[rest], Y[rest], validation=(train.X[held], Y[held]))
    seconds = time.process_time() - started
    scores = model.predict_proba(test.X)
    sets = model.threshold_.apply(scores)
    given = {"score": {"Y_score": scores}, "pred": {"Y_pred": sets}}
    found = {
        metric.name: metric(test.Y, **given[metric.needs]) for metric in map(get_metric, METRICS)
    }
    history = model.history_
    extra = {"rate": float(history["tau_h"].iloc[-1])} if "tau_h" in history else {}
    return {**found, **extra, "epochs": len(history), "best": model.best_epoch_, "cpu": seconds}


def cell(folder: Path, most_rows: int, *which: Any) -> dict[str, Any]:
    """A run, from its file if it was done before."""
    stem = "-".join(map(str, which)) + (f"-{most_rows}" if most_rows < 10**9 else "")
    path = folder / ("".join(c if c.isalnum() or c in "-." else "_" for c in stem) + ".json")
    if not path.exists():
        found = run(*which, most_rows)  # type: ignore[arg-type]
        atomic_write_text(path, json.dumps(found))
    return json.loads(path.read_text())


def show(runs: dict[tuple[str, str, str], list[dict[str, Any]]], methods: list[str]) -> None:
    """A line a set and scenario, and the average over all of them."""
    gains: dict[str, list[float]] = defaultdict(list)
    gaps = []
    for name, scenario in dict.fromkeys(key[:2] for key in runs):
        maps = {
            method: np.array([one["map"] for one in runs[name, scenario, method]])
            for method in methods
            if (name, scenario, method) in runs
        }
        gap = maps[FULL].mean() - maps[BOTTOM].mean()
        gaps.append(gap)
        line = f"{name:18s} {scenario:6s}"
        for method, values in maps.items():
            gain = values.mean() - maps[BOTTOM].mean()
            gains[method].append(gain)
            closed = "" if method in (FULL, BOTTOM) else f" ({gain / gap:4.0%})"
            line += f"  {method} {values.mean():.4f}+-{values.std():.4f}{closed}"
        print(line)
    print(f"\nover {len(gaps)} of them        mean gap {np.mean(gaps):.4f}")
    for method, values in gains.items():
        if method in (FULL, BOTTOM) or len(values) < len(gaps):
            continue
        shares = np.array(values) / np.array(gaps)
        print(
            f"{method:18s} closes {np.sum(values) / np.sum(gaps):4.0%} of the mean gap; "
            f"mean of the shares {shares.mean():4.0%}, median {np.median(shares):4.0%}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--datasets", nargs="+", default=list(SETS))
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS))
    parser.add_argument(
        "--methods", nargs="+", default=["cls"], help='ids, or id?{"parameter": value}'
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--most-rows", type=int, default=10**9, help="of the training part")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    methods = list(dict.fromkeys([FULL, BOTTOM, *options.methods]))
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for name in options.datasets:
        for scenario in options.scenarios:
            for method in methods:
                runs[name, scenario, method] = [
                    cell(
                        options.folder,
                        options.most_rows,
                        name,
                        "all" if method == FULL else scenario,
                        method,
                        seed,
                    )
                    for seed in range(options.seeds)
                ]
    show(runs, methods)


if __name__ == "__main__":
    main()

"""Quality of methods for partial labels: how much of the gap to full annotation they close.

For each data set, scenario and seed: the official split (or a random one); positives of the
training part are hidden at random (a share is kept, or a single one per row). All methods get the
same rows: what one needs for early stopping and estimates it holds out of them, **annotated just
as partially**, and the threshold is 0.5, so that nothing is held out for it. The test part is
scored once, with its full labels. Methods stand on the same network, `mlp`, with defaults. With
full annotation the epoch is chosen by mean average precision, which full labels allow.

`cls-true` is CLS with the true share of missing positives, which nobody knows outside of an
experiment; `plain-pair` is CLS without selection, `weights-alone` is CLS+ without selection.

    gap closed = (mAP of the method - mAP of assume-negative)
               / (mAP with full annotation - mAP of assume-negative)

Each run is one small JSON file in the folder given, and is not run twice: the script may be
stopped and started again, and a run counts only for the code that made it (delete the folder
after a change). Run it with, say,

    LABELWEAVE_DATA=... python benchmarks/partial_quality.py cells --datasets scene yeast --seeds 3

`--part training` scores a quarter of the training part in place of the test part, to choose by;
give it a folder of its own. A cell that is not there yet is run in the order of the table;
`--seconds` stops before the next run once they are over, and the table then shows what is done.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from itertools import product
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
SCENARIOS = ("single", "0.25")
NAMED = {
    "plain-pair": 'cls?{"tau_h": 0.0, "tau_l": 0.0}',
    "weights-alone": 'cls+?{"tau_h": 0.0, "tau_l": 0.0}',
}
COMPARED = (
    "cls", "cls-true", "cls+", "weights-alone", "cross-em", "em-forest", "wan", "ll-r", "epr",
)  # fmt: skip
FULL, BOTTOM = "full", "an"
METRICS = ("map", "cf1", "of1")


def observed(Y: lw.LabelMatrix, scenario: str, seed: int) -> lw.LabelMatrix:
    if scenario == "single":
        return keep_single_positive(Y, random_state=seed).Y
    return hide_positives(Y, 1 - float(scenario), random_state=seed).Y


def run(
    name: str, scenario: str, method: str, seed: int, most_rows: int, part: str
) -> dict[str, Any]:
    """Scores of one fit on the test part, or on a quarter held out of the training part."""
    train, test = lw.load_dataset(name).split()
    if part == "training":
        rest, held = stratified_holdout(train.Y, 0.25, random_state=seed)
        train, test = train[rest], train[held]
    if len(train.Y) > most_rows:
        train = train[np.random.default_rng(seed).permutation(len(train.Y))[:most_rows]]
    Y = train.Y if method == FULL else observed(train.Y, scenario, seed)
    id, _, settings = NAMED.get(method, method).partition("?")
    ids = {FULL: BOTTOM, "cls-true": "cls"}
    model = lw.make(ids.get(id, id), random_state=seed, threshold=0.5)
    if id == FULL:
        model.set_params(monitor="map")
    if id == "cls-true":
        missing = (train.Y.to_numpy() == 1) & (Y.to_numpy() == 0)
        model.set_params(tau_h=missing.sum() / (Y.to_numpy() == 0).sum())
    if settings:
        model.set_params(**json.loads(settings))
    started = time.process_time()
    model.fit(train.X, Y)
    seconds = time.process_time() - started
    scores = model.predict_proba(test.X)
    sets = model.threshold_.apply(scores)
    given = {"score": {"Y_score": scores}, "pred": {"Y_pred": sets}}
    found = {
        metric.name: metric(test.Y, **given[metric.needs]) for metric in map(get_metric, METRICS)
    }
    history = model.history_
    rate = history["tau_h"].iloc[-1] if "tau_h" in history else getattr(model, "tau_h_", None)
    extra = {} if rate is None else {"rate": float(rate)}
    return {**found, **extra, "epochs": len(history), "best": model.best_epoch_, "cpu": seconds}


def cell_path(folder: Path, most_rows: int, *which: Any) -> Path:
    """Where the result of a run is kept."""
    stem = "-".join(map(str, which)) + (f"-{most_rows}" if most_rows < 10**9 else "")
    return folder / ("".join(c if c.isalnum() or c in "-." else "_" for c in stem) + ".json")


def show(runs: dict[tuple[str, str, str], list[dict[str, Any]]], methods: list[str]) -> None:
    """A Markdown table of mAP, seeds' spread and gap closed, and the mean over its rows."""
    gains: dict[str, list[tuple[float, float]]] = defaultdict(list)
    means: dict[str, list[float]] = defaultdict(list)
    others = [method for method in methods if method not in (FULL, BOTTOM)]
    print(f"| set | scenario | seeds | full | assume negative | {' | '.join(others)} |")
    print("|---" * (5 + len(others)) + "|")
    for name, scenario in dict.fromkeys(key[:2] for key in runs):
        maps = {
            method: np.array([one["map"] for one in runs[name, scenario, method]])
            for method in methods
            if runs.get((name, scenario, method))
        }
        if FULL not in maps or BOTTOM not in maps:
            continue
        bottom = maps[BOTTOM].mean()
        gap = maps[FULL].mean() - bottom
        line = [name, scenario, str(len(maps[BOTTOM]))]
        for method in (FULL, BOTTOM, *others):
            if method not in maps:
                line.append("-")
                continue
            values = maps[method]
            means[method].append(values.mean())
            text = f"{values.mean():.3f} ± {values.std():.3f}"
            if method in others:
                gains[method].append((values.mean() - bottom, gap))
                text += f" ({(values.mean() - bottom) / gap:.0%})"
            line.append(text)
        print(f"| {' | '.join(line)} |")
    print()
    print("mean mAP: " + ", ".join(f"{name} {np.mean(each):.4f}" for name, each in means.items()))
    for method, pairs in gains.items():
        gain, gap = np.array(pairs).T
        shares = gain / gap
        print(
            f"{method}: over {len(gap)} lines closes {gain.sum() / gap.sum():.0%} of the mean gap "
            f"({gap.mean():.3f}); median share {np.median(shares):.0%}; CPU seconds of a fit, "
            f"against assume-negative's: {_cost(runs, method):.1f}"
        )


def _cost(runs: dict[tuple[str, str, str], list[dict[str, Any]]], method: str) -> float:
    """How many times the CPU seconds of assume-negative, over the runs that both have."""
    own = other = 0.0
    for (name, scenario, which), found in runs.items():
        if which == method:
            for one, bottom in zip(found, runs[name, scenario, BOTTOM], strict=False):
                own, other = own + one["cpu"], other + bottom["cpu"]
    return own / max(other, 1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--datasets", nargs="+", default=list(SETS))
    parser.add_argument("--scenarios", nargs="+", default=list(SCENARIOS))
    parser.add_argument("--lines", nargs="+", help="in place of both, such as scene:0.25")
    parser.add_argument(
        "--methods", nargs="+", default=list(COMPARED), help='ids, or id?{"parameter": value}'
    )
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--most-rows", type=int, default=10**9, help="of the training part")
    parser.add_argument(
        "--part", choices=["test", "training"], default="test", help="whose rows are scored"
    )
    parser.add_argument("--seconds", type=float, default=float("inf"), help="for new runs")
    options = parser.parse_args()
    lines = list(product(options.datasets, options.scenarios))
    if options.lines:
        lines = [tuple(line.split(":")) for line in options.lines]
    options.folder.mkdir(parents=True, exist_ok=True)
    methods = list(dict.fromkeys([FULL, BOTTOM, *options.methods]))
    runs: dict[tuple[str, str, str], list[dict[str, Any]]] = defaultdict(list)
    end = time.monotonic() + options.seconds
    for seed in range(options.seeds):
        for method in methods:
            for name, scenario in lines:
                which = (name, "all" if method == FULL else scenario, method, seed)
                path = cell_path(options.folder, options.most_rows, *which)
                if not path.exists():
                    if time.monotonic() > end:
                        continue
                    result = run(*which, options.most_rows, options.part)
                    atomic_write_text(path, json.dumps(result))
                runs[name, scenario, method].append(json.loads(path.read_text()))
    show(runs, methods)


if __name__ == "__main__":
    main()

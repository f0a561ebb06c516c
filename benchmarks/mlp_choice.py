"""Which settings of a network are best, scored on rows held out of the training parts alone.

From the official training part of each set a quarter is held out (stratified, one draw a
split); the network is fitted to the rest, with a fifth of that as its validation part, where
thresholds are tuned for each metric; the held-out rows are scored. No test part is looked at.

    LABELWEAVE_DATA=... python benchmarks/mlp_choice.py --splits 3 --results choice.jsonl

prints for each setting its scores averaged over the sets, its average rank over sets and
metrics, and its time. With ``--strengths`` it prints the macro F1 at thresholds per label,
for several strengths with which rare labels are held back.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import Any

import pandas as pd
from cells import Cells, parameters_of

import labelweave as lw
from labelweave.data.splits import stratified_holdout
from labelweave.metrics import get_metric
from labelweave.metrics.significance import average_ranks
from labelweave.thresholds import PerLabelThreshold, make_threshold

DATASETS = ("scene", "yeast", "emotions", "birds", "medical", "enron", "sider")
METRICS = ("f1_example", "f1_micro", "map")
STRENGTHS = (0, 2, 5, 10, 20, 40, 80)
# What the settings below differ from, written out so that they stay what they are.
BASE = {
    "hidden": (512, 512),
    "norm": "batch",
    "dropout": 0.5,
    "input_dropout": 0.0,
    "lr": 5e-4,
    "weight_decay": 1e-4,
    "batch_size": 64,
    "epochs": 200,
    "patience": 10,
}
SETTINGS: dict[str, dict[str, Any]] = {
    "base": {},
    "no norm": {"norm": None},
    "layer norm": {"norm": "layer"},
    "lr 1e-3": {"lr": 1e-3},
    "lr 2e-4": {"lr": 2e-4},
    "lr 1e-3, plateau": {"lr": 1e-3, "schedule": "plateau"},
    "patience 20": {"patience": 20},
    "monitor map": {"monitor": "map"},
    "batch 32": {"batch_size": 32},
    "dropout .3": {"dropout": 0.3},
    "dropout .7": {"dropout": 0.7},
    "input dropout .2": {"input_dropout": 0.2},
    "input dropout .4": {"input_dropout": 0.4},
    "dropout .7, input dropout .2": {"dropout": 0.7, "input_dropout": 0.2},
    "weight decay 1e-2": {"weight_decay": 1e-2},
    "weight decay 1e-1": {"weight_decay": 1e-1},
    "smoothing .1": {"loss": "smoothed-bce", "loss_params": {"smoothing": 0.1}},
    "512": {"hidden": (512,)},
    "256, 256": {"hidden": (256, 256)},
    "1024, 1024": {"hidden": (1024, 1024)},
    "256, 256, batch 32": {"hidden": (256, 256), "batch_size": 32},
}


def scores_of(model: Any, name: str, split: int) -> dict[str, float]:
    """Scores of one fit on the rows held out of the training part, and its seconds."""
    train, _ = lw.load_dataset(name).split()
    rest, kept = stratified_holdout(train.Y, 0.25, random_state=split)
    train, held = train[rest], train[kept]
    rest, kept = stratified_holdout(train.Y, 0.2, random_state=split)
    train, validation = train[rest], train[kept]
    started = time.process_time()
    model.fit(train.X, train.Y, validation=validation)
    scores = {"seconds": time.process_time() - started}
    at_validation, at_held = model.predict_proba(validation.X), model.predict_proba(held.X)
    for metric in METRICS:
        if metric == "map":
            scores[metric] = get_metric(metric)(held.Y, Y_score=at_held)
            continue
        rule = make_threshold(f"tuned:{metric}").fit(validation.Y, at_validation)
        scores[metric] = get_metric(metric)(held.Y, Y_pred=rule.apply(at_held))
    for strength in STRENGTHS:
        rule = PerLabelThreshold(strength).fit(validation.Y, at_validation)
        scores[f"strength {strength}"] = get_metric("f1_macro")(held.Y, Y_pred=rule.apply(at_held))
    return scores


def all_scores(options: argparse.Namespace) -> pd.DataFrame:
    """One row per fit: set, setting, split and scores."""
    cells = Cells(options.results)
    rows = []
    for name in options.datasets:
        for setting in options.settings or SETTINGS:
            for split in range(options.splits):
                model = lw.make("mlp", random_state=split, **(BASE | SETTINGS[setting]))
                of = {"data": name, "method": "mlp", "split": split} | parameters_of(model)
                scores = cells.get(of, partial(scores_of, model, name, split))
                rows.append({"data": name, "setting": setting, "split": split} | scores)
    return pd.DataFrame(rows)


def summary(scores: pd.DataFrame) -> pd.DataFrame:
    """One row a setting: means over sets, average ranks, seconds; the best rank first."""
    by_set = scores.groupby(["data", "setting"], sort=False)[[*METRICS, "seconds"]].mean()
    table = by_set.groupby("setting", sort=False).mean()
    for name, columns in {"rank": list(METRICS), "rank f1_example": ["f1_example"]}.items():
        if len(table) > 1:
            cells = pd.concat([by_set[metric].unstack("setting") for metric in columns])
            table[name] = average_ranks(cells)
    return table.sort_values(table.columns[-2] if len(table) > 1 else "f1_example")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--results", help="file of finished fits, to go on from")
    parser.add_argument("--strengths", action="store_true")
    parser.add_argument("--by-set", metavar="METRIC", help="this metric for each set as well")
    options = parser.parse_args()
    scores = all_scores(options)
    pd.set_option("display.width", 200, "display.max_columns", 30)
    if options.strengths:
        by_set = scores.groupby("data", sort=False)[[f"strength {s}" for s in STRENGTHS]].mean()
        print(pd.concat([by_set, by_set.mean().to_frame("mean").T]).round(4).to_string())
        print(average_ranks(by_set).round(2).to_string())
        return
    if options.by_set:
        cells = scores.pivot_table(options.by_set, "setting", "data", sort=False)
        print(cells.round(4).to_string(), "\n")
    print(summary(scores).round(4).to_string())


if __name__ == "__main__":
    main()

"""Quality of the plain MLP, with its defaults, on data sets with an official split.

A fifth of the training part is held out for early stopping and for the threshold, which is
tuned for each metric; the test part is scored once. Run it with

    LABELWEAVE_DATA=... python benchmarks/mlp_quality.py [--data scene yeast] [--seeds 3]
"""

from __future__ import annotations

import argparse
import json

import numpy as np

import labelweave as lw
from labelweave.metrics import get_metric

# Example-F1 that a bare MLP reaches here: less means that something is broken.
TARGETS = {"scene": 0.75, "yeast": 0.655}


def scores_of(name: str, seed: int, parameters: dict) -> dict[str, float]:
    train, test = lw.load_dataset(name).split()
    rest, held = _held_out(train, seed)
    model = lw.make("mlp", random_state=seed, **parameters)
    model.fit(rest.X, rest.Y, validation=held)
    scores = model.predict_proba(test.X)
    found = {"map": get_metric("map")(test.Y, Y_score=scores)}
    for metric in ("f1_example", "f1_micro"):
        model.tune_threshold(held.X, held.Y, f"tuned:{metric}")
        found[metric] = get_metric(metric)(test.Y, Y_pred=model.threshold_.apply(scores))
    return {**found, "epochs": len(model.history_), "best": model.best_epoch_}


def _held_out(train: lw.Dataset, seed: int) -> tuple[lw.Dataset, lw.Dataset]:
    from labelweave.data.splits import stratified_holdout

    rest, held = stratified_holdout(train.Y, 0.2, random_state=seed)
    return train[rest], train[held]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="+", default=list(TARGETS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--set", default="{}", help="parameters of the MLP, as JSON")
    options = parser.parse_args()
    for name in options.data:
        runs = []
        for seed in range(options.seeds):
            run = scores_of(name, seed, json.loads(options.set))
            runs.append(run)
            print(f"{name} seed {seed}: " + ", ".join(f"{k} {v:.4g}" for k, v in run.items()))
        for metric in ("f1_example", "f1_micro", "map"):
            values = np.array([run[metric] for run in runs])
            target = TARGETS.get(name) if metric == "f1_example" else None
            verdict = "" if target is None else f" (to reach: {target})"
            print(f"{name} {metric}: {values.mean():.4f} +- {values.std():.4f}{verdict}")


if __name__ == "__main__":
    main()

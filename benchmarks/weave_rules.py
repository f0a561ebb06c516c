"""Weave with and without the rules for few positives, on rows held out of training parts.

The rules drop slow members, and make networks leave time for a second fold, where the folds so far
have few positives to choose weights by. A quarter of the training rows is held out; test rows are
not read. Budgets are by the clock, so figures differ a little from run to run.

    python benchmarks/weave_rules.py --datasets scene reuters-k500 medical birds
"""

from __future__ import annotations

import argparse
import time

import labelweave as lw
from labelweave.data.splits import split_dataset, stratified_holdout
from labelweave.dependent import weave_schedule
from labelweave.exceptions import InputError
from labelweave.metrics import get_metric
from labelweave.thresholds import make_threshold

METRICS = ("f1_example", "f1_micro", "f1_macro")


def training_part(name: str, seed: int):
    data = lw.load_dataset(name)
    try:
        train, _ = data.split()
    except InputError:  # there is no official split
        train, _ = split_dataset(data, test_size=0.3, random_state=0)
    rest, held = stratified_holdout(train.Y, 0.25, random_state=seed)
    return train[rest], train[held]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--datasets", nargs="+", default=["scene", "reuters-k500"])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rule = weave_schedule.ENOUGH
    for name in options.datasets:
        train, held = training_part(name, options.seed)
        for enough, word in ((0, "without"), (rule, "with")):
            weave_schedule.ENOUGH = enough
            started = time.perf_counter()
            model = lw.Weave(random_state=options.seed).fit(train.X, train.Y)
            seconds = time.perf_counter() - started
            probabilities = model.predict_proba(held.X)
            chosen_on = model.held_out_predictions(None)
            scores = {"map": get_metric("map")(held.Y, Y_score=probabilities)}
            for metric in METRICS:
                threshold = make_threshold("tuned").set_params(metric=metric).fit(*chosen_on)
                scores[metric] = get_metric(metric)(held.Y, Y_pred=threshold.apply(probabilities))
            shown = ", ".join(f"{metric} {score:.4f}" for metric, score in scores.items())
            print(f"{name:16} {word:8} {shown} ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()

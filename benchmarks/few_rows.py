"""Networks with and without longer epochs where rows are few, on rows held out of training parts.

With a few steps an epoch, patience is over before anything is learnt; `min_steps` says how many
steps count as an epoch at the least. A quarter of the training rows is held out to be scored, a
fifth of the others chooses epochs and thresholds; test rows are not read.

    python benchmarks/few_rows.py --datasets genbase medical --methods ofcc mpvae c-gmvae c2ae mlp
"""

from __future__ import annotations

import argparse
import time

import labelweave as lw
from labelweave.data.splits import split_dataset, stratified_holdout
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
    parser.add_argument("--datasets", nargs="+", default=["genbase", "medical"])
    parser.add_argument("--methods", nargs="+", default=["ofcc", "mpvae", "c-gmvae"])
    parser.add_argument("--min-steps", nargs="+", type=int, default=[1, 8, 30])
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.datasets:
        train, held = training_part(name, options.seed)
        rest, validation = stratified_holdout(train.Y, 0.2, random_state=options.seed)
        train, choice = train[rest], train[validation]
        for method in options.methods:
            for steps in options.min_steps:
                started = time.process_time()
                model = lw.make(method, min_steps=steps, random_state=options.seed)
                model.fit(train.X, train.Y, validation=(choice.X, choice.Y))
                seconds = time.process_time() - started
                probabilities = model.predict_proba(held.X)
                validation_scores = model.predict_proba(choice.X)
                scores = {"map": get_metric("map")(held.Y, Y_score=probabilities)}
                for metric in METRICS:
                    threshold = (
                        make_threshold("tuned")
                        .set_params(metric=metric)
                        .fit(choice.Y, validation_scores)
                    )
                    scores[metric] = get_metric(metric)(
                        held.Y, Y_pred=threshold.apply(probabilities)
                    )
                shown = ", ".join(f"{metric} {score:.3f}" for metric, score in scores.items())
                epochs = f"epoch {model.best_epoch_} of {len(model.history_)}"
                print(
                    f"{name:10} {len(train.Y):5} rows {method:8} min_steps {steps:2} {shown} "
                    f"({epochs}, {seconds:.0f} s)",
                    flush=True,
                )


if __name__ == "__main__":
    main()

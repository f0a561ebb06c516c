"""What methods make of dependence between labels, on rows held out of the training part.

known
    Half of the labels of each row, drawn at random, are known at prediction
    (``predict_proba(X, known=...)``); mean average precision on the other half, without and
    with that.
whole sets
    Share of the rows whose whole label set is right: each label at the threshold one half, and,
    for methods that have it, the set that is most probable as a whole.

Run it with, say,

    LABELWEAVE_DATA=... python benchmarks/label_dependence.py --methods rbcc mlp --seeds 2 \\
        --set ofcc.reveal=0
"""

from __future__ import annotations

import argparse

import numpy as np
from dependent_quality import parsed_parameters

import labelweave as lw
from labelweave.data.splits import stratified_holdout
from labelweave.known_labels import KnownLabelsMixin
from labelweave.metrics import mean_average_precision, subset_accuracy


def run(method: str, name: str, seed: int, parameters: dict) -> dict[str, float]:
    """Scores of one fit; the test part is not looked at."""
    train, _ = lw.load_dataset(name).split()
    rest, held_out = stratified_holdout(train.Y, 0.25, random_state=100 + seed)
    model = lw.make(method, random_state=seed, **parameters).fit(train[rest].X, train[rest].Y)
    X, Y = train[held_out].X, train[held_out].Y.to_numpy()
    scores = {"sets": subset_accuracy(Y, model.predict(X))}
    if hasattr(model, "most_probable_sets"):
        scores["sets as a whole"] = subset_accuracy(Y, model.most_probable_sets(X))
    if isinstance(model, KnownLabelsMixin):
        is_known = np.random.default_rng(seed).random(Y.shape) < 0.5
        asked = np.where(is_known, np.nan, Y)
        scores["map"] = mean_average_precision(asked, model.predict_proba(X))
        with_known = model.predict_proba(X, known=np.where(is_known, Y, np.nan))
        scores["map, half known"] = mean_average_precision(asked, with_known)
    return scores


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", default=["rbcc", "ofcc", "mlp"])
    parser.add_argument("--datasets", nargs="+", default=["scene", "yeast"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--set", nargs="+", default=[], metavar="ID.PARAMETER=VALUE")
    options = parser.parse_args()
    parameters = parsed_parameters(options.set)
    for name in options.datasets:
        for method in options.methods:
            seeds = range(options.seeds)
            runs = [run(method, name, seed, parameters.get(method, {})) for seed in seeds]
            values = {k: np.array([one[k] for one in runs]) for k in runs[0]}
            cells = [f"{k} {v.mean():.3f} +- {v.std():.3f}" for k, v in values.items()]
            print(f"{name:8s} {method:8s} {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()

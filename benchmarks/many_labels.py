"""A million labels without examples: index, memory, time per query and per new label.

    python benchmarks/many_labels.py --labels 1000000

Label names are two or three words of the documents, drawn at random. XML0+ over its linear base
classifier, with the static vectors of `FastEmbedder`; the recall compares the index with the
same scores over all labels, on as many labels as --check.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np

import labelweave as lw
from labelweave.unseen._fusion.label_index import LabelIndex


def make_names(texts, number, seed=0):
    words = sorted({w for text in texts for w in text.lower().split() if w.isalpha()})
    random = np.random.default_rng(seed)
    names: dict[str, None] = {}
    while len(names) < number:
        drawn = random.choice(words, size=(number, 3))
        short = random.random(number) < 0.5
        names.update(
            dict.fromkeys(
                " ".join(row[:2] if is_short else row)
                for row, is_short in zip(drawn, short, strict=True)
            )
        )
    return list(names)[:number]


def timed(what, function):
    wall, processor = time.perf_counter(), time.process_time()
    result = function()
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{what:34} {wall:9.3f} s {processor:9.3f} CPU s   peak {peak:7.0f} MB", flush=True)
    return result


def build_index(model, n_lists):
    if n_lists is None:
        model._label_index()
        return
    rows = model.table_.unseen_rows
    model.index_ = LabelIndex(model.table_.vectors(rows), rows, n_lists=n_lists)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--labels", type=int, default=1_000_000)
    parser.add_argument("--check", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=50)
    parser.add_argument("--lists", type=int, help="Regions of the index: few are built sooner.")
    parser.add_argument("--cache", default=True)
    options = parser.parse_args()
    train, test = lw.load_dataset("cooking-se").split()
    train = train[:2000]
    common = train.Y.counts()[0] >= 5
    seen = [name for name, keep in zip(train.label_names, common, strict=True) if keep]
    encoder = timed("distil the encoder, or read it", lw.FastEmbedder(cache=options.cache).fit)
    model = lw.XML0Plus(encoder=encoder, random_state=0)
    timed("fit", lambda: model.fit(train.X, train.Y.select(seen)))
    known = set(seen)
    names = [n for n in make_names(list(train.X), options.labels) if n not in known]
    queries = list(test.X[: options.queries])
    few = names[: options.check]
    timed(f"add {len(few):,} labels", lambda: model.add_labels(few))
    model.set_params(index_above=len(names) + 10)
    every = timed("rank, every label, 5 documents", lambda: model.rank(queries[:5], 10))
    model.set_params(index_above=10_000)
    timed("build the index", lambda: build_index(model, options.lists))
    ranked = timed("rank, index, 5 documents", lambda: model.rank(queries[:5], 10))
    same = [
        len({n for n, _ in a} & {n for n, _ in b}) / 10 for a, b in zip(every, ranked, strict=False)
    ]
    print(f"recall of the ten best: {np.mean(same):.3f}")
    if len(names) > len(few):
        model.index_ = None
        timed(f"add {len(names) - len(few):,} labels", lambda: model.add_labels(names[len(few) :]))
        timed(f"build the index of {len(names):,}", lambda: build_index(model, options.lists))
    model.rank(queries[:1], 10)
    timed(
        f"rank {len(queries)} documents, one at a time", lambda: [model.rank([q]) for q in queries]
    )
    timed("add one label", lambda: model.add_labels("a brand new label"))
    timed("add another", lambda: model.add_labels("another new label"))
    timed(
        "rename an old one", lambda: model.rename_label(names[len(names) // 2], "an old label anew")
    )
    timed("rename it", lambda: model.rename_label("another new label", "quite another label"))
    timed("remove it", lambda: model.remove_labels("quite another label"))


if __name__ == "__main__":
    main()

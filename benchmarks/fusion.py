"""Label fusion: how its cost grows, against Algorithm 1 as written and against one product.

    python benchmarks/fusion.py

Processor seconds of one document from embeddings to the ten best labels. Embeddings are random
directions with a common part, unseen labels near combinations of a few predicted ones. The plain
form is timed on a share of the labels and scaled up.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from labelweave.unseen._fusion.combination_search import top_labels
from labelweave.unseen.xml0_algorithm import label_fusion_reference

D = 384


def make_case(n, n_labels, seed=0):
    random = np.random.default_rng(seed)
    common = random.normal(size=D)
    predicted = random.normal(size=(n, D)) + 0.6 * common
    predicted /= np.linalg.norm(predicted, axis=1, keepdims=True)
    near = 0.5 * (random.random((n_labels, n)) < 0.1) @ predicted * np.sqrt(D)
    unseen = random.normal(size=(n_labels, D)) + 0.6 * common + near
    unseen /= np.linalg.norm(unseen, axis=1, keepdims=True)
    return random.uniform(0.1, 1, n), predicted.astype(np.float32), unseen.astype(np.float32)


def pruned(p, predicted, unseen, k=10):
    V = p[:, None] * predicted.astype(np.float64)
    B = unseen @ V.T.astype(np.float32)
    return top_labels(B, V @ V.T, k, products=lambda rows: unseen[rows].astype(np.float64) @ V.T)


def one_product(p, predicted, unseen, k=10):
    V = (p[:, None] * predicted).astype(np.float32)
    n = len(p)
    subsets = (np.arange(1, 1 << n)[:, None] >> np.arange(n) & 1).astype(np.float32)
    lengths = np.linalg.norm(subsets @ V, axis=1)
    scaled = subsets / lengths[:, None]
    best = np.full(len(unseen), -np.inf, dtype=np.float32)
    B = unseen @ V.T
    for start in range(0, len(unseen), 256):
        best[start : start + 256] = (scaled @ B[start : start + 256].T).max(axis=0)
    order = np.argsort(-best, kind="stable")[:k]
    return order, best[order]


def seconds(function, *arguments, repeat=3):
    taken = []
    for _ in range(repeat):
        start = time.process_time()
        result = function(*arguments)
        taken.append(time.process_time() - start)
    return min(taken), result


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, nargs="+", default=[4, 8, 12, 16, 20, 22])
    parser.add_argument("--labels", type=int, nargs="+", default=[504, 5_000, 20_000, 100_000])
    parser.add_argument("--product-up-to", type=int, default=16, help="Largest n of one product.")
    parser.add_argument("--plain-up-to", type=int, default=8, help="Largest n of Algorithm 1.")
    options = parser.parse_args()
    print("   n   labels   pruned s   product s  ratio    plain s   ratio")
    for n_labels in options.labels:
        for n in options.n:
            case = make_case(n, n_labels)
            quick, searched = seconds(pruned, *case)
            line = f"{n:4} {n_labels:8} {quick:10.4f}"
            if n <= options.product_up_to:
                slow, (order, _) = seconds(one_product, *case, repeat=1)
                assert set(order[:9]) <= set(searched.labels), "another answer"
                line += f" {slow:11.3f} {slow / quick:6.0f}"
            if n <= options.plain_up_to and n_labels <= 504:
                few = max(1, min(n_labels, 40_000 >> n))
                part, _ = seconds(label_fusion_reference, case[0], case[1], case[2][:few], repeat=1)
                none, _ = seconds(label_fusion_reference, case[0], case[1], case[2][:0], repeat=1)
                plain = none + (part - none) * n_labels / few
                line += f" {plain:10.2f} {plain / quick:7.0f}"
            print(line, flush=True)


if __name__ == "__main__":
    main()

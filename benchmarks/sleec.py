"""SLEEC against a reference implementation: time to fit and predict, and agreement.

The reference implementation (`sleec_by_loops`, below) follows the paper literally: it searches
pairs and neighbours row by row, and decomposes the matrix of all inner products in each step of
the singular value projection. It uses the k-means clusters of ours. Both run in this process in
one thread on the same rows, the first of the official parts. CPU seconds are those of the best of
three runs of ours and of one run of the reference. Run it with

    LABELWEAVE_DATA=... python benchmarks/sleec.py [--data scene delicious] [--rows 2500] \\
        [--test 300]

On all rows of delicious the reference would run for hours. --ours also fits ours to all rows
and prints time and peak memory.
"""

from __future__ import annotations

import argparse
import resource
import time
from typing import Any

import numpy as np
import scipy.sparse as sp


def omega_by_loops(labels: np.ndarray, n_neighbors: int) -> np.ndarray:
    """The pairs that are kept: a symmetric boolean matrix."""
    n = len(labels)
    kept = np.zeros((n, n), dtype=bool)
    for i in range(n):
        products = labels @ labels[i]
        # The largest product first, of equal ones the row that follows next in the data.
        order = sorted(range(n), key=lambda j, p=products, i=i: (-p[j], (j - i) % n))
        kept[i, order[:n_neighbors]] = True
    return kept | kept.T


def embedding_by_loops(labels: np.ndarray, model: Any) -> np.ndarray:
    """Algorithm 3, with the whole matrix decomposed in each step."""
    kept = omega_by_loops(labels, model.label_neighbors)
    target, M = labels @ labels.T, np.zeros((len(labels), len(labels)))
    size = min(model.embedding_size, *labels.shape)
    for _ in range(model.svp_iterations):
        values, vectors = np.linalg.eigh(M + model.step * np.where(kept, target - M, 0))
        values, vectors = np.maximum(values[-size:], 0), vectors[:, -size:]
        M = (vectors * values) @ vectors.T
    return vectors * np.sqrt(values)


def sleec_by_loops(X: np.ndarray, Y: np.ndarray, Q: np.ndarray, model: Any) -> np.ndarray:
    """The probabilities of the rows Q, with the settings and the cluster centres of `model`."""
    X, Q = (np.column_stack([part / model.scale_, np.ones(len(part))]) for part in (X, Q))
    votes = np.zeros((len(Q), Y.shape[1]))
    for learner in model.learners_:
        centres = learner["centres"]

        def cluster_of(x: np.ndarray, centres: Any = centres) -> int:
            return 0 if centres is None else int(((centres - x[:-1]) ** 2).sum(axis=1).argmin())

        of_train = np.array([cluster_of(x) for x in X])
        for c in np.unique(of_train):
            A, labels = X[of_train == c], Y[of_train == c]
            Z = embedding_by_loops(labels, model)
            penalty = model.l2 * (A**2).sum() / A.shape[1]
            V = np.linalg.solve(A.T @ A + penalty * np.eye(A.shape[1]), A.T @ Z)
            embedded = A @ V
            for i, q in enumerate(Q):
                if cluster_of(q) == c:
                    distance = ((embedded - q @ V) ** 2).sum(axis=1)
                    nearest = np.argsort(distance, kind="stable")[: model.k]
                    votes[i] += labels[nearest].mean(axis=0) / len(model.learners_)
    return votes


def main() -> None:
    from threadpoolctl import threadpool_limits

    import labelweave as lw

    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=("scene", "delicious"))
    parser.add_argument("--rows", type=int, default=2500, help="training rows")
    parser.add_argument("--test", type=int, default=300, help="rows to predict")
    parser.add_argument("--clusters", type=int, default=1)
    parser.add_argument("--ours", action="store_true", help="ours alone, on all rows")
    options = parser.parse_args()
    with threadpool_limits(1):
        for name in options.data:
            train, test = lw.load_dataset(name).split()
            if options.ours:
                start = time.process_time()
                model = lw.SLEEC(random_state=0).fit(train.X, train.Y)
                scores = model.predict_proba(test.X)
                top = lw.metrics.get_metric("precision@1")(test.Y, Y_score=scores)
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
                print(
                    f"{name}: {time.process_time() - start:.1f} s, peak memory {peak:.2f} GB, "
                    f"precision@1 {top:.3f}"
                )
                continue
            train = train[np.arange(min(options.rows, len(train)))]
            test = test[np.arange(min(options.test, len(test)))]
            seconds = []
            for _ in range(3):
                start = time.process_time()
                model = lw.SLEEC(n_clusters=options.clusters, n_learners=2, random_state=0)
                ours = model.fit(train.X, train.Y).predict_proba(test.X)
                seconds.append(time.process_time() - start)
            ours_s = min(seconds)
            X, Q = (p.X.toarray() if sp.issparse(p.X) else p.X for p in (train, test))
            start = time.process_time()
            plain = sleec_by_loops(X.astype(float), train.Y.to_numpy(float), Q.astype(float), model)
            plain_s = time.process_time() - start
            same = np.isclose(ours, plain, atol=1e-6)
            print(
                f"{name}: {len(train)} rows, plain {plain_s:.1f} s, ours {ours_s:.2f} s, ratio "
                f"{plain_s / ours_s:.1f}; equal probabilities {same.mean():.3%}, label sets "
                f"{((ours >= 0.5) == (plain >= 0.5)).mean():.3%}",
                flush=True,
            )


if __name__ == "__main__":
    main()

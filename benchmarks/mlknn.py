"""MLkNN against scikit-multilearn-ng's: time to fit and predict, and agreement.

Both run in this process on the same rows (the official split) with k = 10 and s = 1, with the
same number of threads. With one thread the CPU seconds of the process are compared, which other
work on the machine disturbs less than wall time; with more, wall time. The best run counts: of 5
of the peer and 20 of ours, on more than 10,000 rows of 1 and 4. Run it with

    LABELWEAVE_DATA=... python benchmarks/mlknn.py [--data scene yeast tmc2007-500] [--threads 1]

(`pip install 'labelweave[bench]'` brings the peer.)

The peer has no setting that is the paper's method: by default a training row is among its own
neighbours, and `ignore_first_neighbours=1`, which leaves it out in training, also drops the
nearest neighbour of each row to predict. So it is fitted with 1 and predicts with 0.

Agreement is the share of equal entries of the predicted label matrix. Rows at equal distance
are the only freedom that is left: the paper does not say which of them are neighbours, this
library takes the first ones, and the peer those that scikit-learn's search happens to return
(it also drops the first of several duplicates of a training row in place of the row itself).
The columns that tell:

* ties: share of the test rows whose k-th and (k+1)-th nearest training rows are equally far;
* agree: of all entries;
* agree untied: of the entries of test rows without such a tie;
* agree same search: of all entries, when this library takes its neighbours from scikit-learn.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

import labelweave as lw

K = 10
SETS = ("scene", "yeast", "tmc2007-500")


def run_ours(train: Any, test: Any, n_jobs: int, engine: str = "auto") -> np.ndarray:
    model = lw.MLkNN(k=K, neighbors=engine, n_jobs=n_jobs)
    return model.fit(train.X, train.Y).predict(test.X)


def run_peer(train: Any, test: Any, n_jobs: int) -> np.ndarray:
    from skmultilearn.adapt import MLkNN

    X, Q = (sp.csr_matrix(part.X) if sp.issparse(part.X) else part.X for part in (train, test))
    model = MLkNN(k=K, ignore_first_neighbours=1)
    model.knn_.set_params(n_jobs=n_jobs)
    model.fit(X, train.Y.to_numpy(int))
    model.ignore_first_neighbours = 0
    return model.predict(Q).toarray()


def best_time(run: Any, times: int, clock: Any) -> tuple[float, np.ndarray]:
    seconds = []
    for _ in range(times):
        start = clock()
        result = run()
        seconds.append(clock() - start)
    return min(seconds), result


def has_tie(train: Any, test: Any) -> np.ndarray:
    search = NearestNeighbors(n_neighbors=K + 1, algorithm="brute").fit(train.X)
    distance, _ = search.kneighbors(test.X)
    return np.isclose(distance[:, K - 1], distance[:, K], rtol=1e-9)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=SETS)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    clock = time.process_time if options.threads == 1 else time.perf_counter
    print(
        f"{'':12} {'peer s':>8} {'ours s':>8} {'ratio':>6} {'ties':>6} {'agree':>7} "
        f"{'agree untied':>13} {'agree same search':>18}"
    )
    with threadpool_limits(options.threads):
        for name in options.data:
            train, test = lw.load_dataset(name).split()
            how = train, test, options.threads
            times = 1 if len(train) > 10_000 else 5
            ours_seconds, ours = best_time(lambda how=how: run_ours(*how), 4 * times, clock)
            peer_seconds, peer = best_time(lambda how=how: run_peer(*how), times, clock)
            tie = has_tie(train, test)
            same_search = run_ours(*how, engine="sklearn")
            equal = ours == peer
            print(
                f"{name:12} {peer_seconds:8.3f} {ours_seconds:8.3f} "
                f"{peer_seconds / ours_seconds:6.1f} {tie.mean():6.1%} {equal.mean():7.2%} "
                f"{equal[~tie].mean():13.2%} {(same_search == peer).mean():18.2%}",
                flush=True,
            )


if __name__ == "__main__":
    main()

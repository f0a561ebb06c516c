"""HARAM against scikit-multilearn-ng's MLARAM: time to fit and predict, and agreement.

Both run in this process on the same rows (the official split, of the test part the first rows of
--test) with vigilance 0.9 and threshold 0.02, in one thread; CPU seconds, the best of three runs
of ours and one of the peer's. Run it with

    LABELWEAVE_DATA=... python benchmarks/haram.py [--data scene delicious] [--test 400]

(`pip install 'labelweave[bench]'` brings the peer.)

The peer cannot tell label sets apart as text once a label has a number above 127 (it decodes bytes
as UTF-8), so for this run its key is the bytes themselves. It takes sparse features, but is slower
with them, so it gets dense ones.

Agreement is the share of equal entries of the label matrix that both predict at the largest drop
of the scores; "agree rank" is the share of entries whose scores, scaled to the sum 1 in a row, are
equal to 1e-4. Boxes or rows that are equally good are the only freedom that is left, in theory: the
peer computes in double precision, this library in the precision of the features. (A row whose
scores are all equal gets one label of the peer and none here.)
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from threadpoolctl import threadpool_limits

import labelweave as lw


def run_ours(train: Any, test: Any) -> tuple[np.ndarray, np.ndarray, int]:
    model = lw.HARAM(0.9, 0.02, threshold="largest-drop").fit(train.X, train.Y)
    scores = model.predict_proba(test.X)
    return scores, model.threshold_.apply(scores), model.lower_.shape[0]


def run_peer(train: Any, test: Any) -> tuple[np.ndarray, np.ndarray, int]:
    from skmultilearn.adapt import MLARAM, mlaram

    mlaram._get_label_combination_representation = lambda labels: labels.nonzero()[0].tobytes()
    X, Q = (p.X.toarray() if sp.issparse(p.X) else p.X for p in (train, test))
    model = MLARAM(vigilance=0.9, threshold=0.02)
    model.fit(X.astype(float), train.Y.to_numpy(int).copy())
    kept: dict[str, np.ndarray] = {}
    original = model.predict_proba

    def keeping(rows: np.ndarray) -> np.ndarray:  # predict computes the scores itself
        kept["scores"] = original(rows)
        return kept["scores"]

    model.predict_proba = keeping
    label_sets = model.predict(Q.astype(float))
    return kept["scores"], label_sets, len(model.neurons)


def timed(run: Any, times: int) -> tuple[float, Any]:
    seconds = []
    for _ in range(times):
        start = time.process_time()
        result = run()
        seconds.append(time.process_time() - start)
    return min(seconds), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--data", nargs="+", default=("scene", "delicious"))
    parser.add_argument("--test", type=int, default=400, help="rows of the test part to predict")
    options = parser.parse_args()
    print(
        f"{'':10} {'boxes':>6} {'peer':>6} {'peer s':>8} {'ours s':>8} {'ratio':>6} "
        f"{'agree':>8} {'agree rank':>11}"
    )
    with threadpool_limits(1):
        for name in options.data:
            train, test = lw.load_dataset(name).split()
            test = test[np.arange(min(options.test, len(test)))] if name != "scene" else test
            ours_s, (ours, sets, n_boxes) = timed(lambda a=train, b=test: run_ours(a, b), 3)
            peer_s, (peer, peer_sets, n_peer) = timed(lambda a=train, b=test: run_peer(a, b), 1)
            ours, peer = (s / np.maximum(s.sum(axis=1, keepdims=True), 1e-30) for s in (ours, peer))
            print(
                f"{name:10} {n_boxes:6d} {n_peer:6d} {peer_s:8.2f} {ours_s:8.3f} "
                f"{peer_s / ours_s:6.1f} {(sets == peer_sets).mean():8.3%} "
                f"{np.isclose(ours, peer, atol=1e-4).mean():11.3%}",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""Precision of the audit: how many of the entries at the top of its list were hidden positives?

Half of the positives of a data set are hidden at random. A base method scores all rows out of
fold, once. From the **same scores and the same labels** two lists of unannotated entries are made:
that of `labelweave.audit`, which also uses the features, and cleanlab's. All of cleanlab's
rankings of single entries are computed (`get_label_quality_scores_per_class`, three methods, with
and without its adjustment of probabilities), and the best one **by the hidden truth** is compared.
n is a quarter of the number of hidden positives.

    precision = hidden positives among the first n unannotated entries / n

Settings of the ranking were chosen on a third of the rows (`--part choice`); figures are of the
other two thirds (`--part report`, the default), with other seeds. `--estimates` leaves out
the estimates from the features, or one of them. Example:

    LABELWEAVE_DATA=... python benchmarks/audit_precision.py --datasets bibtex --seeds 3
"""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import numpy as np
from cleanlab.multilabel_classification.rank import get_label_quality_scores_per_class

import labelweave as lw
from labelweave.auditing import entry_ranking
from labelweave.auditing.entry_ranking import rank_entries
from labelweave.auditing.feature_estimates import feature_estimates, numeric_features
from labelweave.data.scenarios import hide_positives
from labelweave.model_selection import cross_val_predict_proba
from labelweave.unannotated import as_observed

SETS = ("delicious", "bibtex", "tmc2007-500")
CLEANLAB = (
    ("self_confidence", False),
    ("self_confidence", True),
    ("normalized_margin", False),
    ("normalized_margin", True),
    ("confidence_weighted_entropy", False),
)
ESTIMATES = {"both": slice(2), "regression": slice(1), "votes": slice(1, 2), "none": slice(0)}


def rows_of(data: lw.Dataset, part: str, most_rows: int) -> lw.Dataset:
    """Return the rows of a part, always the same ones."""
    order = np.random.default_rng(7).permutation(len(data))
    third = len(data) // 3
    chosen = order[:third] if part == "choice" else order[third:]
    return data[np.sort(chosen[:most_rows])]


def precision(quality: np.ndarray, hidden: np.ndarray, unannotated: np.ndarray, n: int) -> float:
    """Share of hidden positives among the n unannotated entries of lowest quality."""
    places = np.flatnonzero(unannotated.ravel())
    first = places[np.argsort(quality.ravel()[places], kind="stable")[:n]]
    return float(hidden.ravel()[first].mean())


def cell(name: str, method: str, seed: int, options: argparse.Namespace) -> dict[str, Any]:
    data = rows_of(lw.load_dataset(name), options.part, options.most_rows)
    scenario = hide_positives(data.Y, 0.5, random_state=seed)
    positive, hidden = scenario.Y.to_numpy() == 1, scenario.hidden.toarray()
    n = int(hidden.sum()) // 4
    model = lw.make(method, random_state=seed)
    clock = time.process_time()
    scores = cross_val_predict_proba(model, data.X, scenario.Y, cv=options.folds, random_state=seed)
    base_seconds, clock = time.process_time() - clock, time.process_time()
    ranked = rank_entries(
        as_observed(scenario.Y, "zeros"),
        scores,
        X=numeric_features(data),
        n_wanted=n,
        random_state=seed,
    )
    seconds = time.process_time() - clock
    quality = np.full(positive.shape, np.inf)
    quality[ranked.rows, ranked.columns] = -ranked.annotated
    lists = [np.flatnonzero(row).tolist() for row in positive]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peers = {
            f"{kind}{', adjusted' if adjusted else ''}": precision(
                get_label_quality_scores_per_class(
                    lists, scores, method=kind, adjust_pred_probs=adjusted
                ),
                hidden,
                ~positive,
                n,
            )
            for kind, adjusted in CLEANLAB
        }
    best = max(peers, key=peers.__getitem__)
    ours = precision(quality, hidden, ~positive, n)
    return {
        "n": n,
        "ours": ours,
        "peer": peers[best],
        "best": best,
        "peers": peers,
        "share": ranked.annotated_share,
        "seconds": (base_seconds, seconds),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--datasets", nargs="+", default=list(SETS))
    parser.add_argument("--method", default="br")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folds", type=int, default=3)
    parser.add_argument("--part", choices=["choice", "report"], default="report")
    parser.add_argument("--most-rows", type=int, default=10**9)
    parser.add_argument("--estimates", choices=list(ESTIMATES), default="both")
    options = parser.parse_args()
    kept = ESTIMATES[options.estimates]
    entry_ranking.feature_estimates = lambda *args, **kwargs: feature_estimates(*args, **kwargs)[
        kept
    ]
    first = 100 if options.part == "choice" else 0
    for name in options.datasets:
        cells = [cell(name, options.method, first + seed, options) for seed in range(options.seeds)]
        ours = np.array([one["ours"] for one in cells])
        peer = np.array([one["peer"] for one in cells])
        ratio = ours / peer
        print(
            f"{name}, {options.method}, {options.seeds} seeds, n = {cells[0]['n']:,}: "
            f"audit {ours.mean():.4f} +- {ours.std():.4f}, "
            f"cleanlab {peer.mean():.4f} +- {peer.std():.4f}, "
            f"ratio {ratio.mean():.3f} ({ratio.min():.3f} to {ratio.max():.3f})"
        )
        for kind in cells[0]["peers"]:
            values = [one["peers"][kind] for one in cells]
            print(f"    cleanlab {kind}: {np.mean(values):.4f}")
        base, ranking = np.mean([one["seconds"] for one in cells], axis=0)
        share = np.mean([one["share"] for one in cells])
        print(
            f"    half are annotated, estimated {share:.3f}; CPU seconds: base {base:.1f}, "
            f"ranking {ranking:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

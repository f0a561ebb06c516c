"""Precision of the audit: how many of the entries at the top of its list were hidden positives?

Half of the positives of a data set are hidden by chance. A base method scores all rows out of
fold, once. From the **same scores and the same labels** two lists of unannotated entries are made:
that of `labelweave.audit`, which looks at the features as well, and cleanlab's. Of cleanlab every
ranking of single entries that it offers is computed (`get_label_quality_scores_per_class`, three
methods, with and without its adjustment of probabilities), and the best one **by the hidden
truth** is the peer: it gets the benefit of the doubt. n is a quarter of the number of hidden
positives.

    precision = hidden positives among the first n unannotated entries / n

Settings of the ranking were chosen on a third of the rows (`--part choice`); figures are of the
other two thirds (`--part report`, the default), with other seeds. `--views` leaves out what the
audit makes of the features, or a part of it. Run it with, say,

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
from labelweave.auditing import ranking
from labelweave.auditing.ranking import rank_entries
from labelweave.auditing.views import numeric_rows, views_of_rows
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
VIEWS = {"both": slice(2), "regression": slice(1), "votes": slice(1, 2), "none": slice(0)}


def rows_of(data: lw.Dataset, part: str, most_rows: int) -> lw.Dataset:
    """The rows of a part; always the same ones."""
    order = np.random.default_rng(7).permutation(len(data))
    third = len(data) // 3
    chosen = order[:third] if part == "choice" else order[third:]
    return data[np.sort(chosen[:most_rows])]


def precision(quality: np.ndarray, hidden: np.ndarray, is_open: np.ndarray, n: int) -> float:
    """Share of hidden positives among the n open entries of least quality."""
    places = np.flatnonzero(is_open.ravel())
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
        X=numeric_rows(data),
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
        "share": ranked.share,
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
    parser.add_argument("--views", choices=list(VIEWS), default="both")
    options = parser.parse_args()
    kept = VIEWS[options.views]
    ranking.views_of_rows = lambda *rows, **how: views_of_rows(*rows, **how)[kept]
    first = 100 if options.part == "choice" else 0
    for name in options.datasets:
        found = [cell(name, options.method, first + seed, options) for seed in range(options.seeds)]
        ours = np.array([one["ours"] for one in found])
        peer = np.array([one["peer"] for one in found])
        ratio = ours / peer
        print(
            f"{name}, {options.method}, {options.seeds} seeds, n = {found[0]['n']:,}: "
            f"audit {ours.mean():.4f} +- {ours.std():.4f}, "
            f"cleanlab {peer.mean():.4f} +- {peer.std():.4f}, "
            f"ratio {ratio.mean():.3f} ({ratio.min():.3f} to {ratio.max():.3f})"
        )
        for kind in found[0]["peers"]:
            values = [one["peers"][kind] for one in found]
            print(f"    cleanlab {kind}: {np.mean(values):.4f}")
        base, own = np.mean([one["seconds"] for one in found], axis=0)
        share = np.mean([one["share"] for one in found])
        print(
            f"    half is annotated, estimated {share:.3f}; CPU seconds: base {base:.1f}, "
            f"ranking {own:.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

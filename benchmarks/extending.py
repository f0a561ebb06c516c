"""A text model extended without documents: how many new labels it expects, and what P@1 loses.

In each draw a fifth of the labels is removed at random, a classifier of the others is trained, and
they are added to it by name, as `labelweave extend` does where the training data are gone. Printed
are the mean number of new labels per test document, the sum of their probabilities in its place,
and P@1 of all labels before and after; then the share of draws in which the expected number is
within a factor 2 of the truth. "Any constant" is the largest share that one number for all draws
could have, chosen with the truth in hand.

    python benchmarks/extending.py --draws 0 1 2 3 4 5 6 7 8 9
"""

from __future__ import annotations

import argparse

import numpy as np

import labelweave as lw
from labelweave.data.scenarios import hold_labels_out
from labelweave.metrics import precision_at_k
from labelweave.pipeline.recipe import Recipe

MANY = 300  # random removals of labels for "any constant"


def within(expected: np.ndarray, truth: np.ndarray) -> float:
    """The share of draws that are within a factor 2."""
    return float(((expected <= 2 * truth) & (expected >= truth / 2)).mean())


def best_constant(prevalence: np.ndarray, n_removed: int) -> float:
    random = np.random.default_rng(0)
    truth = np.array(
        [random.permutation(prevalence)[:n_removed].sum() for _ in range(MANY)]
    )  # fmt: skip
    return max(within(np.full(MANY, value), truth) for value in truth)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["cooking-se", "reuters21578"])
    parser.add_argument("--draws", nargs="+", type=int, default=[0])
    parser.add_argument("--test-rows", type=int, default=500)
    options = parser.parse_args()
    for name in options.datasets:
        train, test = lw.load_dataset(name).split()
        rows = np.random.default_rng(0).permutation(len(test))[: options.test_rows]
        test = test[np.sort(rows)]
        results = []
        for draw in options.draws:
            held = hold_labels_out(train, test, 0.2, random_state=draw)
            seen = Recipe.checked("br", {}, seed=draw).make(held.train)
            model = lw.XML0Plus.from_fitted(seen.fit(held.train.X, held.train.Y))
            Y = test.Y.select([*held.seen, *held.unseen])
            before = np.hstack(
                [seen.predict_proba(test.X), np.zeros((len(test), len(held.unseen)))]
            )
            model.add_labels(held.unseen, {n: train.Y.descriptions.get(n, "") for n in held.unseen})
            after = model.predict_proba(test.X)[
                :, [list(model.label_names_).index(label) for label in Y.names]
            ]
            truth = float(test.Y.select(held.unseen).counts()[0].sum()) / len(test)
            expected = float(after[:, len(held.seen) :].sum()) / len(test)
            first = [precision_at_k(Y, p, k=1) for p in (before, after)]
            results.append((truth, expected, *first))
            print(
                f"{name}, draw {draw}: {len(held.unseen)} new labels, {truth:.3f} per document, "
                f"expected {expected:.3f}; P@1 {first[0]:.3f} before, {first[1]:.3f} after",
                flush=True,
            )
        values = np.array(results)
        prevalence = test.Y.counts()[0] / len(test)
        lost = values[:, 2] - values[:, 3]
        print(
            f"{name}: within a factor 2 in {within(values[:, 1], values[:, 0]):.0%} of "
            f"{len(values)} draws "
            f"(any constant: {best_constant(prevalence, len(held.unseen)):.0%}); "
            f"mean {values[:, 0].mean():.3f} per document, expected {values[:, 1].mean():.3f}; "
            f"P@1 falls by {lost.mean():.3f} ± {lost.std():.3f}, at most {lost.max():.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

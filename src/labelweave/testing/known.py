"""Labels that are known when a row is predicted, for the methods that can use them."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from labelweave.known import can_be_told
from labelweave.labels import as_labels
from labelweave.testing.common import fresh, learns, refused, same
from labelweave.testing.data import NAMES, linear


def applies_to(estimator: Any) -> bool:
    """Whether the estimator takes `known`."""
    return can_be_told(estimator)


@learns
def check_known_labels_stay(estimator: Any) -> None:
    """Known entries come back as they were given, in probabilities and in label sets."""
    X, Y = linear()
    hidden = np.random.default_rng(0).random(Y.shape) < 0.5
    wrong = np.where(hidden, np.nan, 1 - Y)  # against what the features say
    for spec in (0.5, "top-1", "per-label"):
        model = fresh(estimator, threshold=spec).fit(X, as_labels(Y, names=NAMES))
        found = model.predict_proba(X, known=wrong)
        assert found.shape == Y.shape
        same(found[~hidden], 1 - Y[~hidden], "known probabilities", exact=True)
        assert ((found[hidden] > 0) & (found[hidden] < 1)).all()
        sets = model.predict(X, known=wrong)
        same(sets[~hidden], 1 - Y[~hidden], "known labels", exact=True)
        named = as_labels(model.predict_labels(X, known=wrong), names=NAMES)
        same(named.to_numpy(), sets, "label sets by name", exact=True)


@learns
def check_forms_of_known(estimator: Any) -> None:
    """Arrays, frames, sparse and lists of names mean the same; nothing known is no matter."""
    import pandas as pd

    X, Y = linear()
    model = fresh(estimator).fit(X, as_labels(Y, names=NAMES))
    without = model.predict_proba(X)
    same(model.predict_proba(X, known=np.full(Y.shape, np.nan)), without, "nothing known")
    same(model.predict_proba(X, known=[[] for _ in X]), without, "no names known")
    some = np.full(Y.shape, np.nan)
    some[:, 1] = Y[:, 1]
    expected = model.predict_proba(X, known=some)
    forms = {
        "turned DataFrame": pd.DataFrame({"rain": np.nan, "sea": np.nan, "sun": Y[:, 1]}),
        "DataFrame of one label": pd.DataFrame({"sun": Y[:, 1]}),
        "LabelMatrix": as_labels(some, names=NAMES).to_sparse(),
    }
    for form, known in forms.items():
        same(model.predict_proba(X, known=known), expected, f"known as {form}", exact=True)
    some[:, 1] = np.where(Y[:, 1] == 1, 1, np.nan)
    lists = [["sun"] if has else [] for has in Y[:, 1]]
    expected = model.predict_proba(X, known=some)
    same(model.predict_proba(X, known=lists), expected, "known as lists of names", exact=True)
    alone = [model.predict_proba(X[i : i + 1], known=some[i : i + 1]) for i in range(9)]
    same(np.vstack(alone), expected[:9], "row by row against all at once")


@learns
def check_wrong_known_is_refused(estimator: Any) -> None:
    import pandas as pd

    X, Y = linear()
    model = fresh(estimator).fit(X, as_labels(Y, names=NAMES))
    with refused("known of another width", "(60, 2)", "3"):
        model.predict_proba(X, known=Y[:, :2])
    with refused("known of another length"):
        model.predict_proba(X, known=Y[:-1])
    with refused("known with the value 2", "2"):
        model.predict_proba(X, known=Y + 1)
    with refused("known with a strange label", "'snow'"):
        model.predict_proba(X, known=pd.DataFrame({"snow": Y[:, 0]}))
    with refused("known after a one-dimensional target", "one class"):
        fresh(estimator).fit(X, Y[:, 0] + 1).predict_proba(X, known=Y[:, :2])


@learns
def check_known_labels_help(estimator: Any) -> None:
    """Where labels are alike and features say nothing, knowing one label tells another."""
    random = np.random.default_rng(0)
    X, coin = random.normal(size=(120, 4)), random.integers(0, 2, size=(120, 1))
    Y = np.hstack([coin, coin, 1 - coin])
    model = fresh(estimator).fit(X[:80], Y[:80])
    gains = {}
    for given, asked in permutations(range(3), 2):
        known = np.full((40, 3), np.nan)
        known[:, given] = Y[80:, given]
        truth = Y[80:, asked]
        before, after = model.predict_proba(X[80:]), model.predict_proba(X[80:], known=known)
        gains[given, asked] = roc_auc_score(truth, after[:, asked]) - roc_auc_score(
            truth, before[:, asked]
        )
    best = max(gains.values())
    assert best > 0.2, f"knowing a label raises the AUC of no other by more than {best:.2f}"

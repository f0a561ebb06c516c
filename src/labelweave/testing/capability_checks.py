"""Checks of what only some methods can do.

They can use labels that are known when a row is predicted, or compute the importance of features.
"""

from __future__ import annotations

import tempfile
from copy import deepcopy
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import roc_auc_score

from labelweave.labels import as_labels
from labelweave.persistence import load
from labelweave.testing.check_tools import (
    NAMES,
    Check,
    fresh,
    hidden,
    linear,
    refused,
    same,
    trained,
)


def check_known_labels_stay(estimator: Any) -> None:
    """Known entries are returned unchanged, in probabilities and in label sets."""
    X, Y = linear()
    unknown = np.random.default_rng(0).random(Y.shape) < 0.5
    wrong = np.where(unknown, np.nan, 1 - Y)  # the opposite of what the features predict
    model = deepcopy(trained(estimator))
    probabilities = model.predict_proba(X, known=wrong)
    assert probabilities.shape == Y.shape
    same(probabilities[~unknown], 1 - Y[~unknown], "known probabilities", exact=True)
    assert ((probabilities[unknown] > 0) & (probabilities[unknown] < 1)).all()
    for threshold in (0.5, "top-1", "per-label"):
        model.tune_threshold(X, Y, threshold)
        sets = model.predict(X, known=wrong)
        same(sets[~unknown], 1 - Y[~unknown], "known labels", exact=True)
        named = as_labels(model.predict_labels(X, known=wrong), names=NAMES)
        same(named.to_numpy(), sets, "label sets by name", exact=True)


def check_forms_of_known(estimator: Any) -> None:
    """Arrays, frames, sparse matrices and lists of names mean the same; `known` may be empty."""
    import pandas as pd

    X, Y = linear()
    model = trained(estimator)
    without = model.predict_proba(X)
    same(model.predict_proba(X, known=np.full(Y.shape, np.nan)), without, "nothing known")
    same(model.predict_proba(X, known=[[] for _ in X]), without, "no names known")
    one_label = np.full(Y.shape, np.nan)
    one_label[:, 1] = Y[:, 1]
    expected = model.predict_proba(X, known=one_label)
    forms = {
        "turned DataFrame": pd.DataFrame({"rain": np.nan, "sea": np.nan, "sun": Y[:, 1]}),
        "DataFrame of one label": pd.DataFrame({"sun": Y[:, 1]}),
        "LabelMatrix": as_labels(one_label, names=NAMES).to_sparse(),
    }
    for form, known in forms.items():
        same(model.predict_proba(X, known=known), expected, f"known as {form}", exact=True)
    one_label[:, 1] = np.where(Y[:, 1] == 1, 1, np.nan)
    lists = [["sun"] if has else [] for has in Y[:, 1]]
    expected = model.predict_proba(X, known=one_label)
    same(model.predict_proba(X, known=lists), expected, "known as lists of names", exact=True)
    alone = [model.predict_proba(X[i : i + 1], known=one_label[i : i + 1]) for i in range(9)]
    same(np.vstack(alone), expected[:9], "row by row against all at once")


def check_wrong_known_is_refused(estimator: Any) -> None:
    """Known labels of another shape, with other values or with strange names are refused."""
    import pandas as pd

    X, Y = linear()
    model = trained(estimator)
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


def check_known_labels_help(estimator: Any) -> None:
    """Where labels depend on each other and not on the features, one label predicts another."""
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


def check_importance_of_features(estimator: Any) -> None:
    """Shares sum to one, and the feature that decides a label has its largest share."""
    X, Y = linear(160)
    unknown = np.where(hidden(Y, state=0, label=1), np.nan, Y)
    for form, labels in ((np.asarray, Y), (sp.csr_array, Y), (np.asarray, unknown)):
        model = fresh(estimator).fit(form(X), as_labels(labels, names=NAMES))
        shares = model.feature_importance()
        assert shares.shape == (3, 6)
        assert (shares >= 0).all()
        assert np.allclose(shares.sum(axis=1), 1)
        assert list(shares.argmax(axis=1)) == [0, 1, 2], f"shares {shares.round(2)}"
        assert [best[0][0] for best in model.top_features(1).values()] == ["x0", "x1", "x2"]
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        again = load(Path(folder) / "model").feature_importance()
    same(again, shares, "importance after loading", exact=True)


def check_a_constant_label_has_no_important_feature(estimator: Any) -> None:
    """The shares of a label that is never positive are zero."""
    X, Y = linear()
    Y[:, 1] = 0
    shares = fresh(estimator).fit(X, Y).feature_importance()
    assert np.isfinite(shares).all()
    assert (shares[1] == 0).all()
    assert np.allclose(shares[[0, 2]].sum(axis=1), 1)


def check_weights_of_rows(estimator: Any) -> None:
    """A row of weight 0 is as good as absent, and heavy rows decide against light ones."""
    X, Y = linear()
    weight = np.arange(60) % 3 + 0.5
    weight[::4] = 0
    counted = weight > 0
    weighted = fresh(estimator).fit(X, Y, sample_weight=weight)
    without = fresh(estimator).fit(X[counted], Y[counted], sample_weight=weight[counted])
    probabilities = weighted.predict_proba(X)
    same(probabilities, without.predict_proba(X), "rows of weight 0 and absent rows", exact=True)
    X, Y = np.vstack([X, X]), np.vstack([Y, 1 - Y])
    first, second = (  # heavy: the first or the second of each two contradictory rows
        fresh(estimator).fit(X, Y, sample_weight=np.repeat(weight, 60)).predict_proba(X[:60])
        for weight in ([9.0, 1.0], [1.0, 9.0])
    )
    # Not by a threshold: a method with an asymmetric loss predicts no calibrated probabilities.
    agreement = float((np.sign(first - second) == 2 * Y[:60] - 1).mean())
    assert agreement > 0.7, f"heavy rows move {agreement:.0%} of the probabilities their way"
    for wrong in (-np.ones(120), np.ones(3), np.full(120, np.nan)):
        with refused("weights that are negative, NaN or of another number", "sample_weight"):
            fresh(estimator).fit(X, Y, sample_weight=wrong)


OF_KNOWN_LABELS = (
    Check(check_known_labels_stay, trains=True, of_variants=True),
    Check(check_forms_of_known, trains=True),
    Check(check_wrong_known_is_refused, trains=True),
    Check(check_known_labels_help, trains=True, of_variants=True),
)
OF_WEIGHTS = (Check(check_weights_of_rows, trains=True, of_variants=True),)
OF_IMPORTANCE = (
    Check(check_importance_of_features, trains=True, of_variants=True),
    Check(check_a_constant_label_has_no_important_feature, trains=True, of_variants=True),
)

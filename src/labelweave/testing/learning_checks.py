"""Checks that a method learns, and that its predictions have the right form."""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.testing.check_tools import (
    NAMES,
    Check,
    blobs,
    fresh,
    linear,
    mean_ap,
    same,
    trained,
)


def check_probabilities_and_label_sets(estimator: Any) -> None:
    """predict_proba returns floats strictly between 0 and 1; predict applies the threshold."""
    X, _ = linear()
    model = trained(estimator)
    probabilities = model.predict_proba(X[:17])
    assert isinstance(probabilities, np.ndarray)
    assert probabilities.shape == (17, 3)
    assert probabilities.dtype.kind == "f"
    assert (probabilities > 0).all()
    assert (probabilities < 1).all()
    sets = model.predict(X[:17])
    assert sets.shape == (17, 3)
    assert sets.dtype.kind in "iu"
    same(sets, probabilities >= 0.4, "predict against the threshold", exact=True)
    names = [[NAMES[j] for j in np.flatnonzero(row)] for row in sets]
    assert model.predict_labels(X[:17]) == names
    assert model.n_labels_ == 3
    assert model.n_features_in_ == 6


def check_each_row_is_predicted_by_itself(estimator: Any) -> None:
    """The prediction for a row does not depend on the rows beside it."""
    X = linear()[0][:9]
    model = trained(estimator)
    together = model.predict_proba(X)
    alone = np.vstack([model.predict_proba(row[None, :]) for row in X])
    same(alone, together, "row by row against all at once")
    same(model.predict_proba(X[::-1])[::-1], together, "in another order")


def check_beats_the_label_frequency(estimator: Any) -> None:
    """On easy data it ranks unseen rows much better than by the frequency of the labels."""
    X, Y = linear(160)
    model = fresh(estimator)
    assert model.fit(X[:100], Y[:100]) is model, "fit must return self"
    reached, chance = mean_ap(Y[100:], model.predict_proba(X[100:])), Y[100:].mean()
    assert reached > chance + 0.15, f"mean average precision {reached:.3f}, chance {chance:.3f}"


def check_learns_groups_by_heart(estimator: Any) -> None:
    """Groups of rows that lie far apart are predicted with the label set of their group."""
    X, Y = blobs()
    right = (fresh(estimator).fit(X, Y).predict(X) == Y).all(axis=1).mean()
    assert right >= 0.95, f"only {right:.0%} of the training rows get their label set"


def check_score(estimator: Any) -> None:
    """Score is the share of the rows whose known entries are all right."""
    X, Y = linear()
    model = trained(estimator)
    truth = Y.astype(float)
    truth[::2, 1] = np.nan
    wrong = (model.predict(X) != truth) & ~np.isnan(truth)
    assert np.isclose(model.score(X, truth), (~wrong.any(axis=1)).mean())


def check_one_dimensional_target(estimator: Any) -> None:
    """A one-dimensional y holds one class per row, as in scikit-learn."""
    X, Y = blobs()
    y = np.array(["a", "b", "c", "d"])[Y @ [1, 2, 4] % 5 % 4]
    model = fresh(estimator).fit(X, y)
    assert list(model.classes_) == sorted(set(y))
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-5)
    assert (model.predict(X) == y).mean() >= 0.95


CHECKS = (
    Check(check_probabilities_and_label_sets, trains=True, of_variants=True),
    Check(check_each_row_is_predicted_by_itself, trains=True, of_variants=True),
    Check(check_score, trains=True),
    Check(check_beats_the_label_frequency, trains=True, of_variants=True),
    Check(check_learns_groups_by_heart, trains=True, of_variants=True),
    Check(check_one_dimensional_target, trains=True, of_variants=True),
)

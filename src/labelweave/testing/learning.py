"""Does it learn, and are its answers of the right shape?"""

from __future__ import annotations

from typing import Any

import numpy as np

from labelweave.labels import as_labels
from labelweave.testing.common import fresh, learns, mean_ap, same
from labelweave.testing.data import NAMES, blobs, linear


@learns
def check_probabilities_and_label_sets(estimator: Any) -> None:
    """predict_proba: floats strictly between 0 and 1; predict: 0/1 by the threshold."""
    X, Y = linear()
    model = fresh(estimator, threshold=0.4)
    assert model.fit(X, as_labels(Y, names=NAMES)) is model, "fit must return self"
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


@learns
def check_each_row_is_predicted_by_itself(estimator: Any) -> None:
    """The answer for a row does not depend on the rows beside it."""
    X, Y = linear()
    model = fresh(estimator).fit(X, Y)
    together = model.predict_proba(X[:9])
    alone = np.vstack([model.predict_proba(row[None, :]) for row in X[:9]])
    same(alone, together, "row by row against all at once")
    same(model.predict_proba(X[:9][::-1])[::-1], together, "in another order")


@learns
def check_beats_the_label_frequency(estimator: Any) -> None:
    """On easy data it ranks unseen rows much better than chance."""
    X, Y = linear(160)
    model = fresh(estimator).fit(X[:100], Y[:100])
    reached, chance = mean_ap(Y[100:], model.predict_proba(X[100:])), Y[100:].mean()
    assert reached > chance + 0.15, f"mean average precision {reached:.3f}, chance {chance:.3f}"


@learns
def check_learns_groups_by_heart(estimator: Any) -> None:
    """Groups of rows that lie far apart get the label set of their group."""
    X, Y = blobs()
    found = fresh(estimator).fit(X, Y).predict(X)
    right = (found == Y).all(axis=1).mean()
    assert right >= 0.95, f"only {right:.0%} of the training rows get their label set"


@learns
def check_score(estimator: Any) -> None:
    """score is the share of the rows whose known entries are all right."""
    X, Y = linear()
    model = fresh(estimator).fit(X, Y)
    truth = Y.astype(float)
    truth[::2, 1] = np.nan
    wrong = (model.predict(X) != truth) & ~np.isnan(truth)
    assert np.isclose(model.score(X, truth), (~wrong.any(axis=1)).mean())


@learns
def check_one_dimensional_target(estimator: Any) -> None:
    """A one-dimensional y is one class a row, in scikit-learn's manner."""
    X, Y = blobs()
    y = np.array(["a", "b", "c", "d"])[Y @ [1, 2, 4] % 5 % 4]
    model = fresh(estimator).fit(X, y)
    assert list(model.classes_) == sorted(set(y))
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1, atol=1e-5)
    assert (model.predict(X) == y).mean() >= 0.95

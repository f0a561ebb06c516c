"""Importance of features, for the methods that can tell it."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.importance import HasFeatureImportance
from labelweave.labels import as_labels
from labelweave.persistence import load
from labelweave.testing.common import fresh, learns, same
from labelweave.testing.data import NAMES, hidden, linear


def applies_to(estimator: Any) -> bool:
    """Whether the estimator tells the importance of features."""
    return isinstance(estimator, HasFeatureImportance)


@learns
def check_importance_of_features(estimator: Any) -> None:
    """Shares that sum to one; of each label, the feature that it was made of comes first."""
    X, Y = linear(160)
    unknown = np.where(hidden(Y, state=0, label=1), np.nan, Y)
    for form, labels in ((np.asarray, Y), (sp.csr_array, Y), (np.asarray, unknown)):
        model = fresh(estimator).fit(form(X), as_labels(labels, names=NAMES))
        shares = model.feature_importance()
        assert shares.shape == (3, 6)
        assert (shares >= 0).all()
        assert np.allclose(shares.sum(axis=1), 1)
        assert list(shares.argmax(axis=1)) == [0, 1, 2], f"the features found: {shares.round(2)}"
        assert [best[0][0] for best in model.top_features(1).values()] == ["x0", "x1", "x2"]
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        again = load(Path(folder) / "model").feature_importance()
    same(again, shares, "importance after loading", exact=True)


@learns
def check_a_constant_label_has_no_important_feature(estimator: Any) -> None:
    X, Y = linear()
    Y[:, 1] = 0
    shares = fresh(estimator).fit(X, Y).feature_importance()
    assert np.isfinite(shares).all()
    assert (shares[1] == 0).all()
    assert np.allclose(shares[[0, 2]].sum(axis=1), 1)

"""Thresholds, validation rows, pipelines, searches and cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelweave.data.dataset import Dataset
from labelweave.labels import as_labels
from labelweave.testing.common import fresh, learns, mean_ap, same
from labelweave.testing.data import NAMES, linear

_THRESHOLDS = (
    0.3,
    "tuned",
    "tuned:f1_micro:grid",
    "per-label",
    "top-2",
    "cardinality",
    "cardinality:labels",
)


def check_thresholds(estimator: Any) -> None:
    """Every rule can be asked for by its spec, and predict applies it."""
    X, Y = linear()
    for spec in _THRESHOLDS:
        model = fresh(estimator, threshold=spec).fit(X, Y)
        expected = model.threshold_.apply(model.predict_proba(X))
        same(model.predict(X), expected, f"threshold {spec!r}", exact=True)
        assert model.threshold == spec, "fit changed the parameter"
        if spec == "top-2":
            assert (model.predict(X).sum(axis=1) == 2).all()
    tuned = model.tune_threshold(X[:30], Y[:30], "tuned")
    same(
        tuned.predict(X), tuned.threshold_.apply(tuned.predict_proba(X)), "tuned later", exact=True
    )


def check_validation_rows(estimator: Any) -> None:
    """Rows given as validation= are matched by label name and are not held out of training."""
    X, Y = linear(100)
    labels = as_labels(Y, names=NAMES)
    train, held = labels[:70], labels[70:]
    turned = Dataset(X[70:], held.select(["sun", "rain", "sea"]))
    one = fresh(estimator, threshold="tuned").fit(X[:70], train, validation=(X[70:], held))
    other = fresh(estimator, threshold="tuned").fit(X[:70], train, validation=turned)
    same(one.predict_proba(X), other.predict_proba(X), "validation as a Dataset", exact=True)
    assert one.threshold_.to_dict() == other.threshold_.to_dict()


@learns
def check_pipeline_and_search(estimator: Any) -> None:
    """Pipeline, GridSearchCV with unknown labels, and out-of-fold prediction."""
    from sklearn.model_selection import GridSearchCV

    from labelweave.model_selection import MultiLabelKFold, cross_val_predict_proba, make_scorer

    X, Y = linear()
    unknown = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    pipeline = make_pipeline(StandardScaler(), fresh(estimator))
    step = pipeline.steps[-1][0]
    splitter = MultiLabelKFold(2, random_state=0)
    search = GridSearchCV(
        pipeline,
        {f"{step}__threshold": [0.4, 0.6]},
        scoring=make_scorer("f1_micro"),
        cv=splitter,
        error_score="raise",
    ).fit(X, unknown)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict_proba(X).shape == Y.shape
    found = cross_val_predict_proba(fresh(estimator), X, unknown, cv=splitter)
    assert found.shape == Y.shape
    assert mean_ap(Y, found) > Y.mean() + 0.1


def check_scikit_learns_own_cross_validation(estimator: Any) -> None:
    """Without unknown labels, scikit-learn's splitters and scorers work as they are."""
    from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict

    X, Y = linear()
    found = cross_val_predict(fresh(estimator), X, Y, cv=KFold(2))
    assert found.shape == Y.shape
    search = GridSearchCV(
        fresh(estimator),
        {"threshold": [0.5]},
        scoring=["f1_micro", "roc_auc"],
        refit=False,
        cv=2,
        error_score="raise",
    ).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_roc_auc"]).all()

"""Checks of thresholds, validation rows, pipelines, searches and cross-validation."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from labelweave.data.dataset import Dataset
from labelweave.labels import as_labels
from labelweave.testing.check_tools import NAMES, Check, fresh, linear, mean_ap, same


def check_thresholds(estimator: Any) -> None:
    """Every threshold can be chosen by its name, in fit and afterwards, and predict applies it."""
    X, Y = linear()
    for spec in (0.3, "tuned", "per-label", "top-2", "cardinality"):
        model = fresh(estimator, threshold=spec).fit(X, Y)
        expected = model.threshold_.apply(model.predict_proba(X))
        same(model.predict(X), expected, f"threshold {spec!r}", exact=True)
        assert model.threshold == spec, "fit changed the parameter"
        if spec == "top-2":
            assert (model.predict(X).sum(axis=1) == 2).all()
    for spec in ("tuned", "tuned:f1_micro:grid", "cardinality:labels"):
        model.tune_threshold(X[:30], Y[:30], spec)
        expected = model.threshold_.apply(model.predict_proba(X))
        same(model.predict(X), expected, f"threshold {spec!r} chosen later", exact=True)


def check_validation_rows(estimator: Any) -> None:
    """The rows of validation= are matched by label name, as arrays or as a Dataset."""
    X, Y = linear(100)
    labels = as_labels(Y, names=NAMES)
    train, held = labels[:70], labels[70:]
    turned = Dataset(X[70:], held.select(["sun", "rain", "sea"]))
    one = fresh(estimator, threshold="tuned").fit(X[:70], train, validation=(X[70:], held))
    other = fresh(estimator, threshold="tuned").fit(X[:70], train, validation=turned)
    same(one.predict_proba(X), other.predict_proba(X), "validation as a Dataset", exact=True)
    assert one.threshold_.to_dict() == other.threshold_.to_dict()


def check_pipeline_and_search(estimator: Any) -> None:
    """Pipelines and scikit-learn's grid search work with unknown labels."""
    from sklearn.model_selection import GridSearchCV

    from labelweave.model_selection import MultiLabelKFold, make_scorer

    X, Y = linear()
    unknown = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    pipeline = make_pipeline(StandardScaler(), fresh(estimator))
    step = pipeline.steps[-1][0]
    search = GridSearchCV(
        pipeline,
        {f"{step}__threshold": [0.4, 0.6]},
        scoring=make_scorer("f1_micro"),
        cv=MultiLabelKFold(2, random_state=0),
        error_score="raise",
    ).fit(X, unknown)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.predict_proba(X).shape == Y.shape


def check_out_of_fold_predictions(estimator: Any) -> None:
    """Out-of-fold predictions under unknown labels rank rows better than chance."""
    from labelweave.model_selection import MultiLabelKFold, cross_val_predict_proba

    X, Y = linear()
    unknown = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    splitter = MultiLabelKFold(2, random_state=0)
    predictions = cross_val_predict_proba(fresh(estimator), X, unknown, cv=splitter)
    assert predictions.shape == Y.shape
    assert mean_ap(Y, predictions) > Y.mean() + 0.1


def check_scikit_learns_own_cross_validation(estimator: Any) -> None:
    """Without unknown labels, scikit-learn's splitters and scorers work."""
    from sklearn.model_selection import GridSearchCV, KFold, cross_val_predict

    X, Y = linear()
    assert cross_val_predict(fresh(estimator), X, Y, cv=KFold(2)).shape == Y.shape
    search = GridSearchCV(
        fresh(estimator),
        {"threshold": [0.5]},
        scoring=["f1_micro", "roc_auc"],
        refit=False,
        cv=2,
        error_score="raise",
    ).fit(X, Y)
    assert np.isfinite(search.cv_results_["mean_test_roc_auc"]).all()


CHECKS = (
    Check(check_thresholds),
    Check(check_validation_rows),
    Check(check_pipeline_and_search),
    Check(check_out_of_fold_predictions, trains=True),
    Check(check_scikit_learns_own_cross_validation),
)

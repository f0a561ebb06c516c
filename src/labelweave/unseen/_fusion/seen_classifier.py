"""The classifier of the seen labels, of this library or of another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from labelweave.base import MultiLabelClassifier
from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix


def make_classifier(classifier: Any) -> Any:
    """Return an unfitted classifier: a clone of a classifier, or what None or an id stands for.

    None stands for one linear classifier per label on TF-IDF weights of words and pairs of words. A
    method that takes features gets TF-IDF weights as well.

    >>> make_classifier("mlknn")
    TextClassifier(classifier=MLkNN())
    """
    from labelweave.methods import make
    from labelweave.text import TextClassifier

    if classifier is None:
        from sklearn.linear_model import LogisticRegression

        linear = LogisticRegression(solver="liblinear", C=10.0)
        return TextClassifier(make("br", estimator=linear), max_words=2, max_features=50_000)
    if not isinstance(classifier, str):
        return clone(classifier)
    model = make(classifier)
    return model if capabilities(model).texts else TextClassifier(model)


def fit_classifier(classifier: Any, X: Any, Y: LabelMatrix, random_state: Any) -> Any:
    """Fit a clone of a classifier of this library or of scikit-learn."""
    fresh = make_classifier(classifier)
    parameters = fresh.get_params(deep=False)
    if "random_state" in parameters and parameters["random_state"] is None:
        fresh.set_params(random_state=random_state)
    if isinstance(fresh, MultiLabelClassifier) or not hasattr(fresh, "predict_proba"):
        return fresh.fit(X, Y)
    if Y.has_unknown:
        raise InputError(
            f"{type(fresh).__name__} cannot use unknown labels: use a classifier of labelweave"
        )
    return fresh.fit(X, Y.to_numpy(np.int64))


def names_of(classifier: Any, label_names: Sequence[str] | None) -> list[str]:
    """Names of the labels in the order of the classifier's columns."""
    if label_names is not None:
        return [str(name) for name in label_names]
    if hasattr(classifier, "label_names_"):
        return [str(name) for name in classifier.label_names_]
    raise InputError(
        f"{type(classifier).__name__} does not have the names of its labels: pass label_names="
    )


def probabilities_of(classifier: Any, X: Any, n_labels: int) -> np.ndarray:
    """P(label | x) of any classifier, one column per label.

    scikit-learn's multi-output classifiers return one array per label; a function returns the
    matrix.
    """
    is_function = callable(classifier) and not hasattr(classifier, "predict_proba")
    result = classifier(X) if is_function else classifier.predict_proba(X)
    if isinstance(result, list):
        result = np.column_stack([np.asarray(part)[:, -1] for part in result])
    result = np.asarray(result)
    if result.shape != (len(X) if hasattr(X, "__len__") else X.shape[0], n_labels):
        raise InputError(
            f"the classifier returned probabilities of shape {result.shape} for {n_labels} labels"
        )
    if not np.isfinite(result).all():
        raise InputError("the classifier returned probabilities that are not finite")
    return result

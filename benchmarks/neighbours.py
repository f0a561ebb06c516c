"""What neighbouring libraries do with labels as people have them: facts, tried here.

    python benchmarks/neighbours.py

Each line is one thing tried with the installed version: unknown labels in training, the form of
`predict_proba`, unknown labels in a metric and in a split.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from importlib import metadata
from typing import Any

import numpy as np
from sklearn.datasets import make_multilabel_classification

warnings.simplefilter("ignore")
X, FULL = make_multilabel_classification(n_samples=120, n_classes=4, random_state=0)
PARTIAL = np.where(np.arange(FULL.size).reshape(FULL.shape) % 5 == 0, np.nan, FULL)


def tried(action: Callable[[], Any]) -> str:
    """What came of it, in a few words."""
    try:
        return f"works: {action()}"
    except Exception as error:
        return f"{type(error).__name__}: {' '.join(str(error).split())[:70]}"


def answers(classifier: Callable[[], Any], Y: Any) -> str:
    """The form of the probabilities of a classifier fitted to these labels."""
    return form(classifier().fit(X, Y).predict_proba(X))


def form(values: Any) -> str:
    if isinstance(values, list):
        return f"list of {len(values)} arrays {values[0].shape}"
    return f"{type(values).__name__} {values.shape}"


def main() -> None:
    from iterstrat.ml_stratifiers import MultilabelStratifiedKFold
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import label_ranking_average_precision_score
    from sklearn.multioutput import MultiOutputClassifier
    from skmultilearn.problem_transform import BinaryRelevance

    import labelweave as lw
    from labelweave.data.splits import stratified_folds
    from labelweave.metrics import get_metric

    scores = np.random.default_rng(0).random(FULL.shape)
    libraries = {
        "labelweave": (
            lw.BinaryRelevance,
            lambda: get_metric("lrap")(PARTIAL, Y_score=scores),
            lambda: stratified_folds(lw.as_labels(PARTIAL), 3, random_state=0).shape,
        ),
        "scikit-learn": (
            lambda: MultiOutputClassifier(LogisticRegression(max_iter=1000)),
            lambda: label_ranking_average_precision_score(PARTIAL, scores),
            None,
        ),
        "scikit-multilearn-ng": (
            lambda: BinaryRelevance(LogisticRegression(max_iter=1000)),
            None,
            None,
        ),
        "iterative-stratification": (
            None,
            None,
            lambda: len(list(MultilabelStratifiedKFold(3).split(X, PARTIAL))),
        ),
    }
    for name, (classifier, metric, split) in libraries.items():
        print(f"{name} {metadata.version(name)}")
        if classifier is not None:
            print("  fit with unknown labels  ", tried(partial(answers, classifier, PARTIAL)))
            print("  predict_proba            ", tried(partial(answers, classifier, FULL)))
        if metric is not None:
            print("  ranking metric, unknowns ", tried(metric))
        if split is not None:
            print("  stratified split         ", tried(split))


if __name__ == "__main__":
    main()

"""What a model states itself about the importance of columns or words."""

from __future__ import annotations

from typing import Any

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.explaining.results import FeatureImportance
from labelweave.metrics.evaluation import core_of

__all__ = ["native_importance"]


def native_importance(model: Any) -> FeatureImportance:
    """Return the importance that a model states itself, from its coefficients or trees.

    Of linear models it is the share of a column in the absolute weights, each times the standard
    deviation of its feature; of trees the share in the gains of splits. It needs no rows, but it
    describes the model, not how well its labels can be predicted. For every other model there is
    :func:`feature_importance`.

    Parameters
    ----------
    model : fitted estimator with the capability `feature_importance`

    Returns
    -------
    FeatureImportance
        The values of a label sum to 1. The names are columns of the original table, or words.

    Examples
    --------
    >>> import labelweave as lw
    >>> texts = ["warm sea", "cold sea", "warm town", "cold town"] * 5
    >>> labels = [["sea", "warm"], ["sea"], ["warm"], []] * 5
    >>> importance = native_importance(lw.TextClassifier().fit(texts, labels))
    >>> importance.kind, importance.features
    ('share of the absolute weights', ['cold', 'sea', 'town', 'warm'])
    >>> importance.values.round(1).tolist()
    [[0.0, 0.5, 0.5, 0.0], [0.5, 0.0, 0.0, 0.5]]
    >>> importance.direction[0, 1], importance.direction[0, 2]
    (np.int64(1), np.int64(-1))
    """
    if not capabilities(model).feature_importance:
        raise InputError(
            f"{type(core_of(model)).__name__} has neither coefficients nor gains of splits: "
            "measure the importance on held-out rows with feature_importance(model, X, Y)"
        )
    direction = model.feature_directions()
    return FeatureImportance(
        f"share of the {'gains of splits' if direction is None else 'absolute weights'}",
        [str(name) for name in model.label_names_],
        model._column_names(),
        model.feature_importance(),
        direction=direction,
    )

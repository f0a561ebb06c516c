"""What an estimator can do beyond `fit` and `predict`: declared once, asked for everywhere.

Every estimator of the library declares its capabilities on scikit-learn's tags, where its
parameters may decide about them (a perceptron accepts soft targets only with binary
cross-entropy)::

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.capabilities.known_labels = True
        return tags

The library, the command line and the service ask :func:`capabilities`, and ``labelweave methods
--accepts NAME`` lists the methods that have a capability.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import Tags, get_tags

__all__ = ["Capabilities", "MultiLabelTags", "capabilities", "with_capabilities"]


@dataclass
class Capabilities:
    """What an estimator can do.

    Parameters
    ----------
    vectors : bool, default=True
        X may be a table of numbers, dense or sparse.
    texts : bool, default=False
        X may be a list of texts.
    images : bool, default=False
        X may be images.
    missing_values : bool, default=False
        X may have NaN entries.
    categories : bool, default=False
        Columns of X may be codes of categories: the method uses those that its table encoder
        marks as such.
    passes_tables : bool, default=False
        A table of mixed columns is passed on to the classifiers inside, each of which encodes it
        in its own way. Other methods encode it themselves.
    sample_weight : bool, default=False
        `fit` takes weights of the rows.
    soft_targets : bool, default=False
        Y may hold probabilities between 0 and 1.
    known_labels : bool, default=False
        `predict_proba` takes labels that are already known, ``known=``.
    partial_labels : bool, default=False
        Unannotated entries of Y may be positives that were missed: the method looks for them.
    blank_labels : bool, default=False
        A label may have no known entry in Y: it is learnt as if it had no positive, and a warning
        names it. Other methods refuse it.
    new_labels : bool, default=False
        `add_labels` adds labels that have a name and no example.
    out_of_fold : bool, default=False
        The model learns from the validation rows as well, and provides out-of-fold
        probabilities of all rows, on which thresholds are tuned.
    top_labels : bool, default=False
        `predict_top_k` finds the best labels of a row without the probabilities of all others.
        With many labels these are then what is predicted, scored and written.
    label_prevalence : bool, default=True
        The share of positives in Y is the prevalence of a label. Not so where zeros may be
        missing positives, or where labels are added later.
    randomized : bool, default=True
        Another `random_state` gives another model.
    feature_importance : bool, default=False
        The model states the importance of its features: coefficients or gains of splits.
    progress_bar : bool, default=False
        ``verbose=1`` shows a progress bar.
    """

    vectors: bool = True
    texts: bool = False
    images: bool = False
    missing_values: bool = False
    categories: bool = False
    passes_tables: bool = False
    sample_weight: bool = False
    soft_targets: bool = False
    known_labels: bool = False
    partial_labels: bool = False
    blank_labels: bool = False
    new_labels: bool = False
    out_of_fold: bool = False
    top_labels: bool = False
    label_prevalence: bool = True
    randomized: bool = True
    feature_importance: bool = False
    progress_bar: bool = False


@dataclass(slots=True)
class MultiLabelTags(Tags):
    """scikit-learn's tags with the capabilities of an estimator of this library."""

    capabilities: Capabilities = field(default_factory=Capabilities)


def with_capabilities(tags: Tags) -> MultiLabelTags:
    """The same tags with a place for capabilities."""
    return MultiLabelTags(**{item.name: getattr(tags, item.name) for item in fields(Tags)})


def capabilities(estimator: Any) -> Capabilities:
    """What an estimator can do; the defaults for models of other libraries.

    >>> from labelweave.methods import make
    >>> capabilities(make("chain")).known_labels, capabilities(make("mlknn")).known_labels
    (True, False)
    """
    tags = get_tags(estimator) if isinstance(estimator, BaseEstimator) else None
    return tags.capabilities if isinstance(tags, MultiLabelTags) else Capabilities()

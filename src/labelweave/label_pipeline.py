"""scikit-learn's pipeline with the labels, thresholds and predictions of its last step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from labelweave.capabilities import MultiLabelTags, capabilities, with_capabilities
from labelweave.exceptions import InputError, LabelweaveError, in_one_line
from labelweave.tables.input_columns import InputColumn, columns_of_steps, takes_texts
from labelweave.tables.table import Table

__all__ = ["LabelPipeline", "as_label_pipeline"]


class LabelPipeline(Pipeline):
    """A scikit-learn pipeline that ends in a classifier of this library.

    It is scikit-learn's own :class:`~sklearn.pipeline.Pipeline` with what every classifier of the
    library has beside `fit` and `predict`: `predict_labels`, `tune_threshold`, `save`, and the
    attributes of the labels, which are those of its last step. :func:`labelweave.save` takes a
    plain `Pipeline` too, and :func:`labelweave.load` returns it as a `LabelPipeline`.

    Its parameters are those of the `Pipeline`. `memory`, a folder that only training uses, is not
    saved.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.compose import make_column_transformer
    >>> from sklearn.preprocessing import OneHotEncoder, StandardScaler
    >>> from labelweave.dependent.mlknn import MLkNN
    >>> table = pd.DataFrame({"price": [2.0, 9.0, 1.0, 8.0], "brand": ["a", "b", "a", "b"]})
    >>> columns = make_column_transformer(
    ...     (StandardScaler(), ["price"]), (OneHotEncoder(handle_unknown="ignore"), ["brand"])
    ... )
    >>> model = LabelPipeline([("columns", columns), ("classifier", MLkNN(k=1))])
    >>> model.fit(table, [["cheap"], ["dear"], ["cheap"], ["dear"]]).predict_labels(table[:2])
    [['cheap'], ['dear']]
    """

    _unsaved_parameters: ClassVar[tuple[str, ...]] = ("memory",)

    # -- fitting and predicting --------------------------------------------------------

    def fit(self, X: Any, y: Any = None, **params: Any) -> Self:
        """Fit all steps, one after the other; see scikit-learn's `Pipeline.fit`."""
        super().fit(_frame(X), y, **params)
        return self

    def predict_proba(self, X: Any, **params: Any) -> np.ndarray:
        """P(label | x), one row per sample and one column per label."""
        return self._classifier.predict_proba(self._features(X), **params)

    def predict(self, X: Any, **params: Any) -> np.ndarray:
        """The predicted label sets, as a matrix of 0 and 1."""
        return self._classifier.predict(self._features(X), **params)

    def predict_labels(self, X: Any, **params: Any) -> list[list[str]]:
        """The predicted label sets, as lists of label names."""
        return self._classifier.predict_labels(self._features(X), **params)

    def tune_threshold(self, X: Any, y: Any = None, threshold: Any = "tuned") -> Self:
        """Tune the threshold of the last step again, on rows it was not trained on."""
        self._classifier.tune_threshold(self._features(X), y, threshold)
        return self

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, **params: Any) -> float:
        """Share of the rows whose whole label set is right; unknown entries are ignored."""
        return self._classifier.score(self._features(X), y, sample_weight, **params)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the fitted pipeline to a folder; :func:`labelweave.load` reads it back."""
        from labelweave.persistence import save

        save(self, path)

    def input_columns(self) -> list[InputColumn] | None:
        """Return the columns that rows must have; None if the pipeline was fitted without names.

        Their kinds are derived from the first transformers.
        """
        check_is_fitted(self)
        return columns_of_steps(self[:-1] if len(self.steps) > 1 else self._classifier)

    def _features(self, X: Any) -> Any:
        """Return what the last step receives; errors of a step about the rows name the step."""
        check_is_fitted(self)
        X = self._named(_frame(X))
        for name, step in self.steps[:-1]:
            if step is None or isinstance(step, str):  # "passthrough"
                continue
            try:
                X = step.transform(X)
            except (LabelweaveError, ImportError, MemoryError):
                raise
            except Exception as error:  # of any kind, where the step is from a crafted folder
                raise InputError(
                    f"the step {name!r} of the pipeline ({type(step).__name__}) cannot use these "
                    f"rows: {in_one_line(error)}"
                ) from error
        return X

    def _named(self, X: Any) -> Any:
        """Return rows of an array as a DataFrame, if the pipeline was fitted to names."""
        names = getattr(self, "feature_names_in_", None)
        if names is None or not isinstance(X, np.ndarray) or X.ndim != 2:
            return X
        if X.shape[1] != len(names):
            raise InputError(f"X has {X.shape[1]} columns, but the pipeline expects {len(names)}")
        import pandas as pd

        return pd.DataFrame(X, columns=list(names))

    # -- the labels --------------------------------------------------------------------

    @property
    def _classifier(self) -> Any:
        last = self.steps[-1][1] if self.steps else None
        if not _is_ours(last):
            raise InputError(
                f"the last step of the pipeline is {_name_of(last)}, which is not a classifier of "
                "labelweave: put one there, such as BinaryRelevance(...) around it"
            )
        return last

    @property
    def label_names_(self) -> np.ndarray:
        """Names of the labels, in the order of the columns of `predict_proba`."""
        return self._classifier.label_names_

    @property
    def label_descriptions_(self) -> dict[str, str]:
        """Longer texts for those labels that came with one."""
        return self._classifier.label_descriptions_

    @property
    def n_labels_(self) -> int:
        """Number of labels."""
        return self._classifier.n_labels_

    @property
    def threshold_(self) -> Any:
        """The fitted rule that `predict` applies."""
        return self._classifier.threshold_

    @property
    def _single_label(self) -> bool:
        return self._classifier._single_label

    def _known_labels(self, Y: Any) -> Any:
        return self._classifier._known_labels(Y)

    # -- what it can do, and what was loaded -------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = with_capabilities(super().__sklearn_tags__())
        if not self.steps:
            return tags
        first, last = self.steps[0][1], self.steps[-1][1]
        texts = takes_texts(first)
        images = isinstance(first, BaseEstimator) and get_tags(first).input_tags.three_d_array
        tags.capabilities = replace(
            capabilities(last),
            vectors=not texts and not images,
            texts=texts,
            images=images,
            categories=False,
            passes_tables=False,
            sample_weight=False,
            label_prevalence=False,
            feature_importance=False,  # of the columns before the first step
        )
        return tags

    def _check_state(self) -> None:
        """Refuse loaded steps that are no pipeline."""
        self._validate_steps()
        check_is_fitted(self._classifier)


def as_label_pipeline(estimator: Any) -> Any:
    """Return a pipeline that ends in a classifier of this library as a `LabelPipeline`.

    Its steps are not copied. Any other estimator is returned as it is.
    """
    if type(estimator) is not Pipeline or not estimator.steps:
        return estimator
    if not _is_ours(estimator.steps[-1][1]):
        return estimator
    return LabelPipeline(
        estimator.steps,
        transform_input=estimator.transform_input,
        memory=estimator.memory,
        verbose=estimator.verbose,
    )


def _is_ours(step: Any) -> bool:
    return isinstance(step, BaseEstimator) and isinstance(get_tags(step), MultiLabelTags)


def _frame(X: Any) -> Any:
    """Return the rows of a Table as a DataFrame, which scikit-learn's transformers take."""
    return X.frame if isinstance(X, Table) else X


def _name_of(step: Any) -> str:
    return repr(step) if step is None or isinstance(step, str | Sequence) else type(step).__name__

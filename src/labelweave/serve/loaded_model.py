"""One model in memory: what it accepts, and its predictions for batches of requests."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from sklearn.base import BaseEstimator

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.serve.batching import Batcher
from labelweave.serve.inputs_and_labels import LabelSelection, ScoredRows, select_labels
from labelweave.serve.prometheus_metrics import ServiceMetrics
from labelweave.serve.settings import Settings
from labelweave.text.sentence import SentenceEmbedder
from labelweave.thresholds import TopK

__all__ = ["LoadedModel", "PreparedRequest", "disable_embedding_caches", "read_model"]

_BY_THRESHOLD = LabelSelection()


class PreparedRequest(NamedTuple):
    """The checked rows of a request, their known labels, and which labels to return."""

    X: Any
    known: np.ndarray | None
    # None returns the probabilities of all labels, as :class:`ScoredRows`
    selection: LabelSelection | None


@runtime_checkable
class Explaining(Protocol):
    """A model that can explain which labels it predicts."""

    def explain(self, X: Any, k: int = 5) -> Any: ...


class LoadedModel:
    """A model in memory; all that uses or changes it runs on a single thread, in order.

    * `name`: The name under which the model is served.
    * `feature_names`: The names that records use; None if the features have no names.
    """

    def __init__(
        self,
        name: str,
        model: Any,
        feature_names: Sequence[str] | None,
        settings: Settings,
        metrics: ServiceMetrics,
    ) -> None:
        self.model = model
        can = capabilities(model)
        self.input = "texts" if can.texts else "images" if can.images else "vectors"
        self.n_features: int | None = getattr(model, "n_features_in_", None)
        self.feature_names = None if feature_names is None else [str(n) for n in feature_names]
        self.feature_positions = {n: j for j, n in enumerate(self.feature_names or ())}
        self.accepts_known = can.known_labels
        self.can_change_labels = can.new_labels
        self.can_explain = isinstance(model, Explaining)
        self.version = 0  # the number of label changes that have been applied
        self.batcher = Batcher(
            self._predict,
            max_batch=settings.max_batch,
            max_wait=settings.max_wait,
            max_queue=settings.max_queue,
            on_batch=metrics.batch_rows.labels(name).observe,
        )

    @property
    def label_names(self) -> list[str]:
        """The label names in the order of the model."""
        return [str(name) for name in self.model.label_names_]

    @property
    def descriptions(self) -> dict[str, str]:
        """The descriptions of those labels that have one."""
        return dict(getattr(self.model, "label_descriptions_", {}))

    def known_labels(
        self, known: Sequence[dict[str, bool]] | None, n_rows: int
    ) -> np.ndarray | None:
        """Return the known labels of a request as 1, 0 and NaN, or None if there are none."""
        if known is None or not any(known):
            return None
        if not self.accepts_known:
            raise InputError(
                "known: this model cannot use known labels; chains, C-Tran and LaMP can"
            )
        if len(known) != n_rows:
            raise InputError(f"known has {len(known)} entries, but there are {n_rows} inputs")
        names = self.label_names
        position = {name: j for j, name in enumerate(names)}
        values = np.full((n_rows, len(names)), np.nan, dtype=np.float32)
        for i, labels in enumerate(known):
            for name, value in labels.items():
                if name not in position:
                    raise InputError(f"known: the model has no label {name!r}")
                values[i, position[name]] = value
        return values

    def _predict(self, batch: list[PreparedRequest]) -> list[Any]:
        """Return the result of each request; runs on the thread of the batcher."""
        results: list[Any] = [None] * len(batch)
        for has_known in (False, True):
            members = [i for i, one in enumerate(batch) if (one.known is not None) == has_known]
            if members:
                group = self._predict_group([batch[i] for i in members])
                for i, result in zip(members, group, strict=True):
                    results[i] = result
        return results

    def _predict_group(self, group: list[PreparedRequest]) -> list[Any]:
        """Predict requests together of which all or none have known labels."""
        X = _concatenate([request.X for request in group])
        if group[0].known is None:
            known = None
            probabilities = self.model.predict_proba(X)
        else:
            known = np.concatenate([request.known for request in group])
            probabilities = self.model.predict_proba(X, known=known)
        scored = ScoredRows(probabilities, self.model.label_names_, self._threshold())
        # Most requests use the model's threshold: their labels are selected in one call.
        by_threshold: list[Any] = []
        if any(request.selection == _BY_THRESHOLD for request in group):
            by_threshold = select_labels(scored, _BY_THRESHOLD, known)
        results: list[Any] = []
        first = 0
        for request in group:
            rows = slice(first, first + len(request.X))
            first = rows.stop
            if request.selection == _BY_THRESHOLD:
                results.append(by_threshold[rows])
                continue
            part = scored._replace(probabilities=probabilities[rows])
            if request.selection is None:
                results.append(part)
                continue
            try:
                results.append(
                    select_labels(part, request.selection, None if known is None else known[rows])
                )
            except InputError as error:  # concerns this request only
                results.append(error)
        return results

    def _threshold(self) -> Any:
        single_label = getattr(self.model, "_single_label", False)
        return TopK(1) if single_label else self.model.threshold_


def _concatenate(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return [item for part in parts for item in part]
    return np.concatenate(parts)


def read_model(folder: Path, threads: int) -> tuple[Any, Sequence[str] | None]:
    """Load the model of a folder, and return it with the names of its features."""
    from labelweave.pipeline.model_folder import open_model

    model, origin = open_model(str(folder))
    disable_embedding_caches(model)
    # Small batches are slower with several threads. Only a neural model has imported torch.
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads)
    names = getattr(model, "feature_names_in_", None)
    return model, origin.feature_names if names is None else names


def disable_embedding_caches(model: Any) -> None:
    """Stop the sentence encoders inside a model from caching embeddings on disk.

    The cache saves time when the same texts are embedded again, as in training. In a service it
    would grow with every request and store what clients have sent.

    >>> from sklearn.pipeline import make_pipeline
    >>> model = make_pipeline(SentenceEmbedder(), "passthrough")
    >>> disable_embedding_caches(model)
    >>> model[0].cache
    False
    """
    for estimator in _nested_estimators(model, set()):
        if isinstance(estimator, SentenceEmbedder):
            estimator.cache = False


def _nested_estimators(value: Any, visited: set[int]) -> Iterator[Any]:
    """Yield a value, if it is an estimator, and all estimators inside it."""
    if id(value) in visited:
        return
    visited.add(id(value))
    if isinstance(value, BaseEstimator):
        yield value
        children = list(vars(value).values())
    elif isinstance(value, Mapping):
        children = list(value.values())
    elif isinstance(value, list | tuple):
        children = list(value)
    else:
        return
    for child in children:
        yield from _nested_estimators(child, visited)

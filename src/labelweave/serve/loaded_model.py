"""One model in memory: what it accepts, and its predictions for batches of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from operator import methodcaller
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import scipy.sparse as sp

from labelweave.capabilities import capabilities
from labelweave.exceptions import InputError
from labelweave.labels import is_frame
from labelweave.rows import concatenate_features
from labelweave.serve.batching import Batcher, StoppedError
from labelweave.serve.inputs_and_labels import LabelSelection, ScoredRows, select_labels
from labelweave.serve.label_relations import LabelVectors
from labelweave.serve.model_process import ModelCrashedError, ModelHost
from labelweave.serve.prometheus_metrics import ServiceMetrics
from labelweave.serve.schemas import BodyLimits
from labelweave.serve.settings import Settings
from labelweave.tables.input_columns import InputColumn
from labelweave.thresholds import TopK
from labelweave.top_labels import predicts_top_labels

__all__ = ["LoadedModel", "ModelFacts", "PreparedRequest", "describe"]

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


@runtime_checkable
class HasColumns(Protocol):
    """A model that may have been fitted to a table of named columns."""

    def input_columns(self) -> list[InputColumn] | None: ...


class ModelFacts(NamedTuple):
    """What the service has to know of a model, wherever the model is."""

    input: str  # "texts", "images", "vectors" or "records"
    n_features: int | None
    columns: list[InputColumn] | None  # of records
    image_columns: list[str]  # those of the columns that hold images
    takes_blanks: bool  # whether numbers of vectors may be blank
    accepts_known: bool
    can_change_labels: bool
    explains_by: str | None  # "labels", "words" or "columns"
    reference: Any  # typical values of each column, for explanations; None if there are none
    has_label_vectors: bool
    label_names: np.ndarray
    descriptions: dict[str, str]
    threshold: Any


def _probabilities(model: Any, X: Any) -> Any:
    """The probabilities of all labels; with many labels a sparse matrix of the best of each row."""
    return model.predict_top_k(X) if predicts_top_labels(model) else model.predict_proba(X)


def _finite_rows(probabilities: Any) -> np.ndarray:
    if not sp.issparse(probabilities):
        return np.isfinite(probabilities).all(axis=1)
    finite = np.ones(probabilities.shape[0], dtype=bool)
    finite[probabilities.tocoo().row[~np.isfinite(probabilities.data)]] = False
    return finite


def describe(model: Any) -> ModelFacts:
    """Return the facts of a model."""
    can = capabilities(model)
    single_label = getattr(model, "_single_label", False)
    reference = vars(model).get("_reference")  # set by `read_model`
    columns = model.input_columns() if isinstance(model, HasColumns) else None
    if columns is not None and all(c.kind == "number" and not c.may_be_blank for c in columns):
        columns = None  # vectors of numbers
    images = [column.name for column in columns or () if column.kind == "image"]
    if is_frame(reference):  # a changed folder cannot name files for explanations to read
        reference = reference.assign(**{name: None for name in images if name in reference})
    of_features = "vectors" if columns is None else "records"
    return ModelFacts(
        input="texts" if can.texts else "images" if can.images else of_features,
        n_features=getattr(model, "n_features_in_", None),
        columns=columns,
        image_columns=images,
        takes_blanks=can.missing_values,
        accepts_known=can.known_labels,
        can_change_labels=can.new_labels,
        explains_by=_explains_by(model, reference),
        reference=reference,
        has_label_vectors=isinstance(model, LabelVectors),
        label_names=np.array([str(name) for name in model.label_names_], dtype=object),
        descriptions=dict(getattr(model, "label_descriptions_", {})),
        threshold=TopK(1) if single_label else model.threshold_,
    )


def _explains_by(model: Any, reference: Any) -> str | None:
    can = capabilities(model)
    if isinstance(model, Explaining):
        return "labels"
    if can.texts:
        return "words"
    return "columns" if reference is not None and not can.images else None


class LoadedModel:
    """A loaded model; all that uses or changes it runs on a single thread, in order.

    * `name`: The name under which the model is served.
    * `host`: The model itself.
    """

    def __init__(
        self, name: str, host: ModelHost, settings: Settings, metrics: ServiceMetrics
    ) -> None:
        self.host = host
        self.facts: ModelFacts = host.ask(describe)
        names = host.feature_names
        self.feature_names = None if names is None else [str(n) for n in names]
        self.feature_positions = {n: j for j, n in enumerate(self.feature_names or ())}
        self._max_rows = settings.max_rows
        self.version = 0  # the number of label changes that have been applied
        self._end: Exception | None = None
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
        return self.facts.label_names.tolist()

    @property
    def body_limits(self) -> BodyLimits:
        """How much a request for predictions may hold: features and known labels of all rows."""
        of_features = self.facts.input in ("vectors", "records")
        n_features = (self.facts.n_features or 0) if of_features else 0
        limits = BodyLimits.of(self._max_rows, 4 + n_features + len(self.facts.label_names))
        # A table may be sent column by column, each value in a list of its own.
        return (
            limits._replace(containers=limits.values) if self.facts.input == "records" else limits
        )

    def ask(self, function: Callable[[Any], Any]) -> Any:
        """Return the result of a function of the model; for the thread of the batcher."""
        if self._end is not None:
            raise self._end
        try:
            return self.host.ask(function)
        except ModelCrashedError as error:
            self._end = error
            raise

    def change(self, functions: Sequence[Callable[[Any], Any]]) -> None:
        """Change the labels of the model; for the thread of the batcher."""
        for function in functions:
            self.ask(function)
        self.facts = self.ask(describe)

    def give_up(self) -> None:
        """Answer nothing more: the labels in memory are not those of the database."""
        self._end = StoppedError()

    async def close(self) -> None:
        """Finish the accepted requests, and give the model up."""
        await self.batcher.close()
        await asyncio.to_thread(self.host.close)

    def known_labels(
        self, known: Sequence[dict[str, bool]] | None, n_rows: int
    ) -> np.ndarray | None:
        """Return the known labels of a request as 1, 0 and NaN, or None if there are none."""
        if known is None or not any(known):
            return None
        if not self.facts.accepts_known:
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
                    raise InputError(f"known: the model has no label {name[:80]!r}")
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
        X = concatenate_features([request.X for request in group])
        if group[0].known is None:
            known = None
            probabilities = self.ask(partial(_probabilities, X=X))
        else:
            known = np.concatenate([request.known for request in group])
            probabilities = self.ask(methodcaller("predict_proba", X, known=known))
        scored = ScoredRows(probabilities, self.facts.label_names, self.facts.threshold)
        finite = _finite_rows(probabilities)
        # Most requests use the model's threshold: their labels are selected in one call.
        by_threshold: list[Any] = []
        if any(request.selection == _BY_THRESHOLD for request in group):
            by_threshold = select_labels(scored, _BY_THRESHOLD, known)
        results: list[Any] = []
        first = 0
        for request in group:
            rows = slice(first, first + len(request.X))
            first = rows.stop
            if not finite[rows].all():
                row = int(np.argmin(finite[rows]))
                results.append(
                    InputError(
                        f"inputs.{row} has no finite probabilities: its numbers are too large for "
                        "this model"
                    )
                )
                continue
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

"""One loaded model: what it takes, and its thread."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from labelweave.exceptions import InputError
from labelweave.known import can_be_told
from labelweave.serve.batching import Batcher
from labelweave.serve.metrics import ServiceMetrics
from labelweave.serve.prediction import Choice, Scores, choose_labels
from labelweave.serve.settings import Settings

__all__ = ["Asked", "LoadedModel", "input_kind", "read_model"]

PLAIN = Choice()


class Asked(NamedTuple):
    """Rows of one request, checked, what is known of their labels (NaN: nothing), and which of
    them it wants; None: the scores."""

    X: Any
    known: np.ndarray | None
    choice: Choice | None


class LoadedModel:
    """A model in memory; everything that uses or changes it runs on its one thread.

    Parameters
    ----------
    name : str
        Under which it is served.
    model : a fitted estimator
    feature_names : sequence of str or None
        For records; None where the features have no names.
    settings : Settings
    metrics : ServiceMetrics
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
        self.kind = input_kind(model)
        self.width: int | None = getattr(model, "n_features_in_", None)
        self.feature_names = None if feature_names is None else [str(n) for n in feature_names]
        self.places = {n: j for j, n in enumerate(self.feature_names or ())}
        self.takes_known = can_be_told(model)
        self.version = 0  # of its labels: how many changes are applied
        self.batcher = Batcher(
            self._predict,
            max_batch=settings.max_batch,
            max_wait=settings.max_wait,
            max_queue=settings.max_queue,
            on_batch=metrics.batch_rows.labels(name).observe,
        )

    @property
    def can_change(self) -> bool:
        """Whether labels can be added, removed and renamed."""
        return hasattr(self.model, "add_labels")

    @property
    def can_explain(self) -> bool:
        """Whether it tells why it gives a label."""
        return hasattr(self.model, "explain")

    @property
    def label_names(self) -> list[str]:
        """The labels, in the model's order."""
        return [str(name) for name in self.model.label_names_]

    @property
    def descriptions(self) -> dict[str, str]:
        """Longer texts of those labels that have one."""
        return dict(getattr(self.model, "label_descriptions_", {}))

    def label_set(self, known: Sequence[dict[str, bool]] | None, rows: int) -> np.ndarray | None:
        """Known labels of the rows as 1, 0 and NaN; None where nothing is known."""
        if known is None or not any(known):
            return None
        if not self.takes_known:
            raise InputError(
                "known: this model does not predict a label from others; chains, C-Tran and LaMP do"
            )
        if len(known) != rows:
            raise InputError(f"known has {len(known)} entries, but there are {rows} inputs")
        names = self.label_names
        position = {name: j for j, name in enumerate(names)}
        given = np.full((rows, len(names)), np.nan, dtype=np.float32)
        for i, labels in enumerate(known):
            for name, value in labels.items():
                if name not in position:
                    raise InputError(f"known: the model has no label {name!r}")
                given[i, position[name]] = value
        return given

    # -- on the thread -----------------------------------------------------------------

    def _predict(self, batch: list[Asked]) -> list[Any]:
        """For each request its predictions, or its :class:`Scores` where it wants these."""
        found: list[Any] = [None] * len(batch)
        for told in (False, True):
            places = [i for i, asked in enumerate(batch) if (asked.known is not None) == told]
            if not places:
                continue
            X = _together([batch[i].X for i in places])
            known = np.concatenate([batch[i].known for i in places]) if told else None
            more = {"known": known} if told else {}
            scores = Scores(
                self.model.predict_proba(X, **more), self.model.label_names_, self._rule()
            )
            self._share_out(batch, places, scores, known, found)
        return found

    @staticmethod
    def _share_out(
        batch: list[Asked],
        places: list[int],
        scores: Scores,
        known: np.ndarray | None,
        found: list[Any],
    ) -> None:
        """Write into `found` what each request of these places wants."""
        # Most requests want what the model's rule gives: these are answered all at once.
        plain = None
        if any(batch[i].choice == PLAIN for i in places):
            plain = choose_labels(scores, PLAIN, known)
        first = 0
        for i in places:
            rows = slice(first, first + len(batch[i].X))
            first = rows.stop
            own = scores._replace(probabilities=scores.probabilities[rows])
            choice = batch[i].choice
            if choice is None:
                found[i] = own
            elif choice == PLAIN and plain is not None:
                found[i] = plain[rows]
            else:
                told = None if known is None else known[rows]
                try:
                    found[i] = choose_labels(own, choice, told)
                except InputError as error:  # of this request, not of those beside it
                    found[i] = error

    def _rule(self) -> Any:
        if getattr(self.model, "_single_label", False):  # one class a row: the likeliest
            from labelweave.thresholds import TopK

            return TopK(1)
        return self.model.threshold_


def _together(parts: list[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return [item for part in parts for item in part]
    return np.concatenate(parts)


def input_kind(model: Any) -> str:
    """What a model takes: "texts", "images" or "vectors"."""
    tags = getattr(model, "__sklearn_tags__", None)
    inputs = None if tags is None else tags().input_tags
    if getattr(inputs, "string", False):
        return "texts"
    if getattr(inputs, "three_d_array", False):
        return "images"
    return "vectors" if hasattr(model, "n_features_in_") else "texts"


def read_model(folder: Path, threads: int) -> tuple[Any, Sequence[str] | None]:
    """The model of a folder, without pickle, and the names of its features."""
    from labelweave.assembly.model_folder import open_model
    from labelweave.serve.unkept_texts import keep_no_vectors

    model, origin = open_model(str(folder))
    keep_no_vectors(model)
    _limit_threads(threads)
    names = getattr(model, "feature_names_in_", None)
    return model, origin.feature_names if names is None else names


def _limit_threads(threads: int) -> None:
    """Threads of torch, if the model brought it; small batches are slower with several."""
    import sys

    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads)

"""The scores of one model on one data set: a mapping that prints as a table."""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix, as_labels
from labelweave.metrics._counts import count, overlap_score
from labelweave.metrics.labelwise import ap_of_labels, auc_of_labels
from labelweave.metrics.metric_catalog import Metric

__all__ = ["Scores"]


@dataclass(eq=False, repr=False)
class Scores(Mapping[str, float]):
    """Values of metrics by name, made by :func:`labelweave.metrics.evaluate`.

    ``scores["f1_example"]`` is a number (nan if the metric is undefined). ``print(scores)`` shows a
    table, :meth:`to_dict` returns values for JSON and :meth:`per_label` a DataFrame.

    Parameters
    ----------
    metrics : sequence of Metric
    numbers : sequence of float
        One value per metric.
    title : str
        What was scored.
    Y_true : LabelMatrix
    Y_score, Y_pred : array-like or None
        What the metrics were computed from, in the order of the labels of `Y_true`.
    thresholds : float or ndarray of shape (n_labels,), optional
        The thresholds that turned `Y_score` into `Y_pred`, if there are any.
    """

    metrics: Sequence[Metric]
    numbers: Sequence[float]
    title: str
    Y_true: LabelMatrix
    Y_score: Any = None
    Y_pred: Any = None
    thresholds: Any = None

    @cached_property
    def _by_name(self) -> dict[str, float]:
        pairs = zip(self.metrics, self.numbers, strict=True)
        return {metric.name: float(value) for metric, value in pairs}

    def __getitem__(self, name: str) -> float:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    def to_dict(self) -> dict[str, float | None]:
        """Return the values by name; None, which JSON can hold, if a metric is undefined."""
        return {name: None if np.isnan(value) else value for name, value in self.items()}

    def per_label(self) -> Any:
        """Return a DataFrame with one row per label.

        Columns: label, positives and known (numbers of entries); precision, recall and f1 if
        label sets were scored; ap and auc if scores were; threshold if there is one. A value that
        is undefined, such as the recall of a label without a positive, is nan.
        """
        import pandas as pd

        positives, known = self.Y_true.counts()
        columns: dict[str, Any] = {
            "label": list(self.Y_true.names),
            "positives": positives,
            "known": known,
        }
        if self.Y_pred is not None:
            counts = count(self.Y_true, as_labels(self.Y_pred), axis=0)
            for kind in ("precision", "recall", "f1"):
                columns[kind] = overlap_score(kind, counts, np.nan)
        if self.Y_score is not None and not sp.issparse(self.Y_score):
            columns["ap"] = ap_of_labels(self.Y_true, self.Y_score)
            columns["auc"] = auc_of_labels(self.Y_true, self.Y_score)
        if self.thresholds is not None:
            columns["threshold"] = np.broadcast_to(self.thresholds, positives.shape)
        return pd.DataFrame(columns)

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (
                metric.name,
                metric.label,
                "undefined" if np.isnan(value) else f"{value:.4f}",
                "higher" if metric.greater_is_better else "lower",
            )
            for metric, value in zip(self.metrics, self._by_name.values(), strict=True)
        ]

    def __repr__(self) -> str:
        rows = [("name", "metric", "value", "better"), *self._rows()]
        name, label, value, _ = (max(len(row[i]) for row in rows) for i in range(4))
        lines = [f"{a:<{name}}  {b:<{label}}  {c:>{value}}  {d}" for a, b, c, d in rows]
        return "\n".join([self.title, *lines])

    def _repr_html_(self) -> str:
        body = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._rows()
        )
        return (
            f"<table><caption>{html.escape(self.title)}</caption><thead><tr><th>name</th>"
            f"<th>metric</th><th>value</th><th>better</th></tr></thead><tbody>{body}</tbody></table>"
        )

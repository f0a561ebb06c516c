"""What explanations return: numbers per label and column, with their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from labelweave.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["FeatureImportance", "RowExplanation"]


@dataclass(frozen=True, eq=False)
class FeatureImportance:
    """How much each label depends on each column or word.

    Attributes
    ----------
    kind : str
        What the numbers are, in words.
    labels, features : list of str
        Names of the labels, and of the columns or words.
    values : ndarray of shape (n_labels, n_features)
        The importance; NaN for a label whose score is not defined on the rows.
    spread : ndarray of the same shape, optional
        Standard deviation over the repetitions.
    direction : ndarray of the same shape, optional
        1 if more of the feature makes the label more probable, -1 if less probable, 0 where it is
        neither, or where several features of a column differ.
    scores : ndarray of shape (n_labels,), optional
        The score of each label with all columns as they are.
    n_rows : int, optional
        Number of rows on which the importance was measured.
    not_measured : list of str
        The columns or words that were left out because there were too many.
    """

    kind: str
    labels: list[str]
    features: list[str]
    values: np.ndarray
    spread: np.ndarray | None = None
    direction: np.ndarray | None = None
    scores: np.ndarray | None = None
    n_rows: int | None = None
    not_measured: list[str] | tuple[str, ...] = ()

    def top(self, k: int = 10) -> dict[str, list[tuple[str, float]]]:
        """Return the `k` most important features of each label, without those of no importance.

        >>> values = np.array([[0.2, 0.0, 0.5]])
        >>> FeatureImportance("shares", ["sea"], ["a", "b", "c"], values).top(2)
        {'sea': [('c', 0.5), ('a', 0.2)]}
        """
        order = np.argsort(-np.nan_to_num(self.values), axis=1, kind="stable")[:, :k]
        return {
            label: [(self.features[j], float(row[j])) for j in best if row[j] > 0]
            for label, row, best in zip(self.labels, self.values, order, strict=True)
        }

    def select_labels(self, names: list[str]) -> FeatureImportance:
        """Return the importance for these labels, in this order."""
        rows = label_positions(self.labels, names)

        def part(values: np.ndarray | None) -> Any:
            return None if values is None else values[rows]

        return FeatureImportance(
            self.kind,
            list(names),
            self.features,
            part(self.values),
            part(self.spread),
            part(self.direction),
            part(self.scores),
            self.n_rows,
            self.not_measured,
        )

    def to_frame(self) -> pd.DataFrame:
        """Return one row per label and feature."""
        import pandas as pd

        n_labels, n_features = self.values.shape
        columns: dict[str, Any] = {
            "label": np.repeat(np.asarray(self.labels, dtype=object), n_features),
            "feature": np.tile(np.asarray(self.features, dtype=object), n_labels),
            "importance": self.values.ravel(),
        }
        if self.spread is not None:
            columns["spread"] = self.spread.ravel()
        if self.direction is not None:
            columns["direction"] = self.direction.ravel()
        return pd.DataFrame(columns)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values: per label its score, and the importance of each feature, best first.

        >>> FeatureImportance("shares", ["sea"], ["a"], np.array([[0.5]])).to_dict()["labels"]
        [{'label': 'sea', 'score': None, 'features': [{'feature': 'a', 'importance': 0.5}]}]
        """
        more = {"spread": self.spread, "direction": self.direction}
        labels = []
        for row, label in enumerate(self.labels):
            order = np.argsort(-np.nan_to_num(self.values[row]), kind="stable")
            features = [
                {
                    "feature": self.features[j],
                    "importance": _number(self.values[row, j]),
                    **{name: _number(v[row, j]) for name, v in more.items() if v is not None},
                }
                for j in order
            ]
            score = None if self.scores is None else _number(self.scores[row])
            labels.append({"label": label, "score": score, "features": features})
        return {
            "kind": self.kind,
            "rows": self.n_rows,
            "labels": labels,
            "not_measured": list(self.not_measured),
        }


@dataclass(frozen=True, eq=False)
class RowExplanation:
    """Which columns or words speak for and against the labels of one row.

    Attributes
    ----------
    labels, features : list of str
        Names of the labels, and of the columns or words.
    values : list
        The row's values of the columns; how often the text has each word.
    probabilities : ndarray of shape (n_labels,)
        P(label | x) of the row as it is.
    predicted : ndarray of bool, optional
        Whether the model predicts the label.
    changes : ndarray of shape (n_labels, n_features)
        How much lower the probability is without the row's value of a column, that is, on average
        over other values in its place, or without a word. Above 0 the value speaks for the label.
    scale : {"probability", "logit"}
        Whether `changes` are differences of probabilities or of log odds.
    not_measured : list of str
        The columns or words that were left out because there were too many.
    """

    labels: list[str]
    features: list[str]
    values: list[Any]
    probabilities: np.ndarray
    predicted: np.ndarray | None
    changes: np.ndarray
    scale: str = "probability"
    not_measured: list[str] | tuple[str, ...] = ()

    def strongest(self, label: str, k: int = 10) -> list[tuple[str, Any, float]]:
        """Return the columns with the largest changes for a label: name, value and change."""
        (row,) = label_positions(self.labels, [label])
        changes = self.changes[row]
        order = np.argsort(-np.abs(changes), kind="stable")[:k]
        return [
            (self.features[j], self.values[j], float(changes[j])) for j in order if changes[j] != 0
        ]

    def chosen_labels(self, k: int | None = None) -> list[str]:
        """Return the predicted labels, or the most probable one if none is, best first.

        With `k`, the k most probable labels.
        """
        order = np.argsort(-self.probabilities, kind="stable")
        if k is not None:
            return [self.labels[j] for j in order[:k]]
        predicted = [] if self.predicted is None else [j for j in order if self.predicted[j]]
        return [self.labels[j] for j in (predicted or order[:1])]

    def to_frame(self) -> pd.DataFrame:
        """Return one row per label and column or word."""
        import pandas as pd

        n_labels, n_features = self.changes.shape
        return pd.DataFrame(
            {
                "label": np.repeat(np.asarray(self.labels, dtype=object), n_features),
                "probability": np.repeat(self.probabilities, n_features),
                "feature": np.tile(np.asarray(self.features, dtype=object), n_labels),
                "value": [value for _ in range(n_labels) for value in self.values],
                "change": self.changes.ravel(),
            }
        )

    def to_dict(self, labels: list[str] | None = None, k: int | None = None) -> dict[str, Any]:
        """Return plain values: per label its probability and its `k` largest changes, or all.

        The labels are the given ones, or all.
        """
        by_label = []
        for label in self.labels if labels is None else labels:
            (row,) = label_positions(self.labels, [label])
            predicted = None if self.predicted is None else bool(self.predicted[row])
            strongest = self.strongest(label, len(self.features) if k is None else k)
            by_label.append(
                {
                    "label": label,
                    "probability": _number(self.probabilities[row]),
                    "predicted": predicted,
                    "features": [
                        {"feature": name, "value": _number(value), "change": _number(change)}
                        for name, value, change in strongest
                    ],
                }
            )
        return {"scale": self.scale, "labels": by_label, "not_measured": list(self.not_measured)}


def _number(value: Any) -> Any:
    """A number with six decimals as a plain value; None for NaN."""
    value = value.item() if isinstance(value, np.generic) else value
    if not isinstance(value, float):
        return value
    return None if np.isnan(value) else round(value, 6)


def label_positions(labels: list[str], names: list[str]) -> list[int]:
    """Return the positions of labels; raise an error for a label that is not there."""
    position = {name: j for j, name in enumerate(labels)}
    if unknown := [name for name in names if name not in position]:
        raise InputError(f"the model has no label {unknown[0][:80]!r}")
    return [position[name] for name in names]

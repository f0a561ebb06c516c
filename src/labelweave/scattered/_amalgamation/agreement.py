"""How well teachers agree with each other, and a combined model with each of them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import expit

from labelweave.exceptions import InputError
from labelweave.plotting import draw, line_style, shorten
from labelweave.scattered._amalgamation.teacher_predictions import (
    TeacherPredictions,
    joint_vocabulary,
    predict_with_teachers,
)
from labelweave.scattered.teacher import as_teachers

__all__ = ["Disagreement", "disagreement", "disagreement_of", "fidelity_to_teachers"]

_MAX_BARS = 40
_TABLE = ["first", "second", "label", "rows", "rate", "first_only", "second_only", "both", "kappa"]


@dataclass(frozen=True, eq=False)
class Disagreement:
    """Contradictions between all pairs of teachers on the labels that they share.

    Attributes
    ----------
    table : DataFrame
        One row per pair and label: `first`, `second`, `label`, `rows` (on which neither
        abstains), `rate` (share of these on which they contradict each other), `first_only` and
        `second_only` (number of rows that only this teacher predicts positive), `both`, and
        `kappa` (Cohen's kappa; NaN where both predictions are constant).
    rows : DataFrame
        One row per contradiction: `row`, `label`, `first`, `second` and both probabilities,
        largest differences first.
    teachers : list of str
    n_rows : int
    """

    table: Any
    rows: Any
    teachers: list[str]
    n_rows: int

    def summary(self) -> list[str]:
        """One sentence per pair of teachers."""
        if self.table.empty:
            return ["no two teachers share a label: there is nothing to compare"]
        lines = []
        for (first, second), part in self.table.groupby(["first", "second"], sort=False):
            worst = part.loc[part["rate"].idxmax()]
            differ = int((part.first_only + part.second_only).sum())
            n_entries = int(part["rows"].sum())
            lines.append(
                f"{first} and {second} share {len(part)} labels and contradict each other in "
                f"{differ / max(n_entries, 1):.1%} of the entries ({first} alone positive: "
                f"{int(part.first_only.sum()):,}, {second} alone: "
                f"{int(part.second_only.sum()):,}); most on {worst.label!r}, {worst.rate:.1%}"
            )
        return lines

    def to_csv(self, path: str | PathLike[str]) -> list[Path]:
        """Write the table to `path` and the rows beside it, as ``<name>-rows.csv``."""
        path = Path(path)
        rows = path.with_name(f"{path.stem}-rows{path.suffix or '.csv'}")
        self.table.to_csv(path, index=False)
        self.rows.to_csv(rows, index=False)
        return [path, rows]

    def plot(self, path: str | PathLike[str] | None = None) -> str:
        """Return an SVG of the rates: one bar per pair and label, divided by direction."""
        svg = _disagreement_bars(self.table)
        if path is not None:
            Path(path).write_text(svg, encoding="utf-8")
        return svg


def disagreement(
    teachers: Any,
    X: Any,
    *,
    aliases: Any = None,
    match: str = "ignore-case",
    row_ids: Any = None,
    verbose: int = 0,
) -> Disagreement:
    """Predict rows with several teachers and report where they contradict each other.

    Parameters
    ----------
    teachers : sequence of Teacher, of models that list their labels, or of model folders
    X : rows
    aliases, match
        As in :func:`labelweave.scattered._amalgamation.vocabulary.join_vocabularies`.
    row_ids : sequence, optional
        Names of the rows; by default their numbers.
    verbose : int, default=0

    Examples
    --------
    >>> import numpy as np
    >>> from labelweave.scattered.teacher import Teacher
    >>> warm = Teacher(lambda X: X, ["warm"], name="a")
    >>> mild = Teacher(lambda X: np.sqrt(X), ["Warm"], name="b")
    >>> report = disagreement([warm, mild], np.array([[0.1], [0.36], [0.9], [0.4]]))
    >>> report.table[["label", "rate", "first_only", "second_only"]].values.tolist()
    [['warm', 0.5, 0, 2]]
    >>> report.rows["row"].tolist()
    [1, 3]
    """
    teachers = as_teachers(teachers)
    vocabulary = joint_vocabulary(teachers, aliases=aliases, match=match)
    predictions = predict_with_teachers(teachers, vocabulary, X, verbose=verbose)
    return disagreement_of(predictions, row_ids=row_ids)


def disagreement_of(predictions: TeacherPredictions, *, row_ids: Any = None) -> Disagreement:
    """The report on predictions that are already there."""
    import pandas as pd

    logits, names = predictions.without_abstentions(), predictions.names
    n_rows = logits.shape[1]
    ids = np.arange(n_rows) if row_ids is None else np.asarray(row_ids)
    if len(ids) != n_rows:
        raise InputError(f"{len(ids)} row ids were given for {n_rows} rows")
    labels = np.asarray(predictions.vocabulary.names, dtype=object)
    tables, contradictions = [], []
    by_name = sorted(range(len(names)), key=lambda t: names[t])
    known, offsets = predictions.vocabulary.known, predictions.offsets
    for a, b in combinations(by_name, 2):
        shared = np.flatnonzero(known[a] & known[b])
        if not len(shared):
            continue
        one, other = logits[a][:, shared], logits[b][:, shared]
        compared = ~np.isnan(one) & ~np.isnan(other)
        yes, other_yes = compared & (one > 0), compared & (other > 0)
        n = compared.sum(axis=0)
        first_only, second_only, both = (
            mask.sum(axis=0) for mask in (yes & ~other_yes, ~yes & other_yes, yes & other_yes)
        )
        differ = yes != other_yes
        tables.append(
            pd.DataFrame(
                {
                    "first": names[a],
                    "second": names[b],
                    "label": labels[shared],
                    "rows": n,
                    "rate": differ.sum(axis=0) / np.maximum(n, 1),
                    "first_only": first_only,
                    "second_only": second_only,
                    "both": both,
                    "kappa": _kappa(n, first_only, second_only, both),
                }
            )
        )
        rows, columns = np.nonzero(differ)
        contradictions.append(
            pd.DataFrame(
                {
                    "row": ids[rows],
                    "label": labels[shared[columns]],
                    "first": names[a],
                    "second": names[b],
                    "first_probability": expit(one[rows, columns] + offsets[a][shared[columns]]),
                    "second_probability": expit(other[rows, columns] + offsets[b][shared[columns]]),
                }
            )
        )
    if not tables:
        return Disagreement(
            pd.DataFrame(columns=_TABLE), pd.DataFrame(columns=["row"]), names, n_rows
        )
    table = pd.concat(tables, ignore_index=True)
    listed = pd.concat(contradictions, ignore_index=True)
    difference = (listed.first_probability - listed.second_probability).abs()
    listed = listed.loc[difference.sort_values(ascending=False, kind="stable").index]
    return Disagreement(table, listed.reset_index(drop=True), names, n_rows)


def _kappa(
    n: np.ndarray, first_only: np.ndarray, second_only: np.ndarray, both: np.ndarray
) -> np.ndarray:
    """Cohen's kappa of each label."""
    n = np.maximum(n, 1)
    a, b = (first_only + both) / n, (second_only + both) / n
    expected = a * b + (1 - a) * (1 - b)
    observed = 1 - (first_only + second_only) / n
    rest = 1 - expected
    return np.where(rest > 0, (observed - expected) / np.where(rest > 0, rest, 1), np.nan)


def _disagreement_bars(table: Any) -> str:
    """Draw one bar per pair and label, the highest rate first.

    The two parts of a bar are the rows that only the first and only the second teacher predicts
    positive.
    """
    shown = table.sort_values("rate", ascending=False, kind="stable").head(_MAX_BARS)
    places = np.arange(len(shown))
    n_rows = np.maximum(shown["rows"].to_numpy(dtype=float), 1)
    first = shown["first_only"].to_numpy(dtype=float) / n_rows
    second = shown["second_only"].to_numpy(dtype=float) / n_rows

    def paint(figure: Any) -> None:
        axis = figure.subplots()
        axis.barh(places, first, color=line_style(0).color, label="only the first is positive")
        axis.barh(
            places,
            second,
            left=first,
            color=line_style(5).color,
            hatch="//",
            edgecolor="white",
            label="only the second is positive",
        )
        pairs = zip(shown["label"], shown["first"], shown["second"], strict=True)
        names = [f"{shorten(x)} ({shorten(a, 12)}, {shorten(b, 12)})" for x, a, b in pairs]
        axis.set_yticks(places, names)
        axis.invert_yaxis()
        more = f", the {len(shown)} highest of {len(table)}" if len(table) > len(shown) else ""
        axis.set(xlabel=f"share of the rows on which two teachers contradict each other{more}")
        axis.legend(loc="lower right")

    height = float(np.clip(1.2 + 0.25 * len(shown), 2.0, 12.0))
    return draw("disagreement", 7.5, height, paint)


def fidelity_to_teachers(predictions: TeacherPredictions, probabilities: np.ndarray) -> Any:
    """How closely probabilities follow each teacher, on the labels that it predicts.

    A DataFrame with one row per teacher: `teacher`, `labels`, `rows`, `agreement` (share of the
    entries that both put on the same side of one half), `f1` (micro F1 with the teacher as the
    truth; NaN where neither predicts a positive) and `difference` (mean absolute difference of the
    probabilities).
    """
    import pandas as pd

    table = []
    for name, columns, logits in zip(
        predictions.names, predictions.vocabulary.columns, predictions.logits, strict=True
    ):
        logits, p = logits[:, columns], probabilities[:, columns]
        theirs, ours = logits > 0, p > 0.5
        n_positive = int(theirs.sum() + ours.sum())
        table.append(
            {
                "teacher": name,
                "labels": len(columns),
                "rows": len(logits),
                "agreement": float((theirs == ours).mean()),
                "f1": 2 * int((theirs & ours).sum()) / n_positive if n_positive else np.nan,
                "difference": float(np.abs(expit(logits) - p).mean()),
            }
        )
    return pd.DataFrame(table).sort_values("teacher", kind="stable", ignore_index=True)

"""The section of examples: rows with their true and predicted labels."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from labelweave.labels import LabelMatrix
from labelweave.reporting.evaluated_model import EvaluatedModel
from labelweave.reporting.report_content import Block, Paragraph, Picture, Section, Table

__all__ = [
    "ExampleRow",
    "ExampleRows",
    "choose_rows",
    "describe_rows",
    "examples_section",
    "spread_rows_section",
]

_MOST_NAMES = 12
_SHOWN = 6  # rows of each kind
_LONGEST_TEXT = 200


class ExampleRows(NamedTuple):
    """Numbers of rows to show, and how many rows are right and wrong in all."""

    right: np.ndarray
    wrong: np.ndarray
    most_confident_errors: np.ndarray
    n_right: int
    n_wrong: int


class ExampleRow(NamedTuple):
    """The names of a row's labels: found, missed, wrongly added, and predicted but unknown."""

    row: int
    found: list[str]
    missed: list[str]
    added: list[str]
    unknown: list[str]


def examples_section(evaluated: EvaluatedModel) -> Section:
    """Return tables of rows with right and wrong label sets."""
    examples = choose_rows(evaluated.truth, evaluated.predicted, evaluated.probabilities)
    n_rows = examples.n_right + examples.n_wrong
    blocks: list[Block] = [
        Paragraph(
            f"{examples.n_right:,} of {n_rows:,} rows have exactly the right label set. The rows "
            "shown are evenly spread over all rows of their kind."
        )
    ]
    for title, rows in (
        ("Right label sets", examples.right),
        ("Wrong label sets", examples.wrong),
        ("The most confident errors", examples.most_confident_errors),
    ):
        if len(rows):
            caption = f"{title}, {evaluated.rows_description}"
            blocks.append(_example_table(evaluated, caption, rows))
    return Section("Examples", blocks)


def spread_rows_section(evaluated: EvaluatedModel) -> Section:
    """Return a table of rows evenly spread over all: with many labels hardly a set is right."""
    rows = _evenly_spread(np.arange(len(evaluated.rows)), 2 * _SHOWN)
    caption = f"Rows evenly spread over all, {evaluated.rows_description}"
    return Section("Examples", [_example_table(evaluated, caption, rows)])


def _example_table(evaluated: EvaluatedModel, caption: str, rows: np.ndarray) -> Table:
    ids = evaluated.rows.row_ids
    examples = describe_rows(evaluated.truth, evaluated.predicted, rows)
    any_unknown = any(example.unknown for example in examples)
    columns = ["row", "found", "missed", "wrongly added"]
    columns += ["predicted, truth unknown"] if any_unknown else []
    columns += ["text"] if evaluated.rows.is_text else []
    columns += ["image"] if evaluated.rows.is_image else []
    urls = _pictures(evaluated, rows)
    table_rows = []
    for example in examples:
        cells: list[str | Picture | None] = [str(example.row if ids is None else ids[example.row])]
        cells += [_join_names(names) for names in (example.found, example.missed, example.added)]
        cells += [_join_names(example.unknown)] if any_unknown else []
        if evaluated.rows.is_text:
            text = " ".join(evaluated.rows.X[example.row].split())
            cells.append(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…")
        if url := urls.get(example.row):
            cells.append(Picture(url, f"the image of row {cells[0]}"))
        elif evaluated.rows.is_image:
            cells.append(None)
        table_rows.append(cells)
    return Table(caption, columns, table_rows)


def _pictures(evaluated: EvaluatedModel, rows: np.ndarray) -> dict[int, str]:
    """Small pictures of rows of images, as data URLs."""
    if not evaluated.rows.is_image:
        return {}
    from labelweave.data.images.thumbnails import thumbnail_urls

    return dict(zip(rows.tolist(), thumbnail_urls(evaluated.rows.X, rows.tolist()), strict=True))


def _join_names(names: list[str]) -> str | None:
    if not names:
        return None
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more


def choose_rows(
    Y: LabelMatrix, predicted: np.ndarray, scores: np.ndarray, n_rows: int = _SHOWN
) -> ExampleRows:
    """Choose rows to show. A row is right if all its known entries are.

    Right rows that have a label are preferred to right rows without one. The most confident errors
    are the rows with the highest score of a label that they do not have, or the lowest score of a
    label that they have.

    >>> from labelweave.labels import as_labels
    >>> Y, predicted = as_labels([[1, 0], [0, 1], [0, 0]]), np.array([[1, 0], [1, 0], [1, 0]])
    >>> chosen = choose_rows(Y, predicted, np.array([[0.9, 0.1], [0.9, 0.3], [0.6, 0.2]]), 1)
    >>> chosen.right, chosen.wrong, chosen.most_confident_errors
    (array([0]), array([1]), array([1]))
    """
    values, predicted = Y.to_numpy(), np.asarray(predicted).astype(bool)
    wrong = ((values == 1) & ~predicted) | ((values == 0) & predicted)
    is_wrong, has_known = wrong.any(axis=1), ~np.isnan(values).all(axis=1)
    right_rows = np.flatnonzero(~is_wrong & has_known)
    labelled = right_rows[(values[right_rows] == 1).any(axis=1)]
    wrong_rows = np.flatnonzero(is_wrong)
    error = np.where(wrong, np.abs(values - scores), -np.inf).max(axis=1, initial=-np.inf)
    most_confident = wrong_rows[np.argsort(-error[wrong_rows], kind="stable")[:n_rows]]
    return ExampleRows(
        _evenly_spread(labelled if len(labelled) else right_rows, n_rows),
        _evenly_spread(wrong_rows, n_rows),
        most_confident,
        len(right_rows),
        len(wrong_rows),
    )


def describe_rows(Y: LabelMatrix, predicted: Any, rows: np.ndarray) -> list[ExampleRow]:
    """Return the label names of each of these rows, sorted by what became of them."""
    sets = predicted[rows].toarray() if sp.issparse(predicted) else np.asarray(predicted)[rows]
    values, predicted = Y[rows].to_numpy(), sets.astype(bool)
    names = np.asarray(Y.names, dtype=object)
    return [
        ExampleRow(
            int(row),
            names[(value == 1) & chosen].tolist(),
            names[(value == 1) & ~chosen].tolist(),
            names[(value == 0) & chosen].tolist(),
            names[np.isnan(value) & chosen].tolist(),
        )
        for row, value, chosen in zip(rows, values, predicted, strict=True)
    ]


def _evenly_spread(rows: np.ndarray, n_rows: int) -> np.ndarray:
    if len(rows) <= n_rows:
        return rows
    return rows[np.linspace(0, len(rows) - 1, num=n_rows).astype(int)]

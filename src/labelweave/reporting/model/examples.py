"""Rows with their true and predicted labels."""

from __future__ import annotations

import numpy as np

from labelweave.reporting.document import Block, Paragraph, Section, Table
from labelweave.reporting.model.subject import Subject
from labelweave.reporting.numbers.examples import choose_examples, describe_rows

__all__ = ["examples_section"]

_MOST_NAMES = 12
_LONGEST_TEXT = 200


def examples_section(subject: Subject) -> Section:
    """Right and wrong label sets."""
    chosen = choose_examples(subject.truth, subject.predicted, subject.probabilities)
    n_rows = chosen.n_right + chosen.n_wrong
    blocks: list[Block] = [
        Paragraph(
            f"{chosen.n_right:,} of {n_rows:,} rows have exactly the right label set. The rows "
            "shown are spread evenly over all rows of their kind."
        )
    ]
    for title, rows in (
        ("Right label sets", chosen.right),
        ("Wrong label sets", chosen.wrong),
        ("Surest mistakes: the model is most certain of what is wrong", chosen.surest),
    ):
        if len(rows):
            blocks.append(_table(subject, f"{title}, {subject.how}", rows))
    return Section("Examples", blocks)


def _table(subject: Subject, title: str, rows: np.ndarray) -> Table:
    ids = subject.rows.row_ids
    examples = describe_rows(subject.truth, subject.predicted, rows)
    any_unknown = any(example.unknown for example in examples)
    columns = ["row", "found", "missed", "wrongly added"]
    columns += ["predicted, truth unknown"] if any_unknown else []
    columns += ["text"] if subject.rows.is_text else []
    cells = []
    for example in examples:
        cell: list[str | None] = [str(example.row if ids is None else ids[example.row])]
        cell += [_names(part) for part in (example.found, example.missed, example.added)]
        cell += [_names(example.unknown)] if any_unknown else []
        if subject.rows.is_text:
            text = " ".join(subject.rows.X[example.row].split())
            cell.append(text if len(text) <= _LONGEST_TEXT else text[:_LONGEST_TEXT] + "…")
        cells.append(cell)
    return Table(title, columns, cells)


def _names(names: list[str]) -> str | None:
    if not names:
        return None
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(names[:_MOST_NAMES]) + more

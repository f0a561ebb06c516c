"""Rows in the form that a model takes: numbers, texts, or a table of columns of any kind."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from labelweave.capabilities import capabilities
from labelweave.data import Dataset
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.label_pipeline import LabelPipeline
from labelweave.pipeline.data_parts import check_width
from labelweave.predictor import MultiLabelPredictor
from labelweave.tables.image_column import located
from labelweave.tables.table import Table, as_frame

__all__ = [
    "column_rows",
    "input_of_model",
    "is_of_tables",
    "takes_features_of_images",
    "texts_alone",
    "with_located_images",
]


def is_of_tables(model: Any) -> bool:
    """Whether a fitted model, or a pipeline, takes tables of named columns of any kind."""
    is_ours = isinstance(model, MultiLabelPredictor | LabelPipeline)
    return is_ours and model.input_columns() is not None


def takes_features_of_images(model: Any) -> bool:
    """Whether a model of images takes the features that its encoder made before, too."""
    if not capabilities(model).images:
        return False
    from labelweave.images import ImageClassifier

    return isinstance(model, ImageClassifier)


def input_of_model(model: Any, data: Dataset) -> Dataset:
    """The same rows in the form that a fitted model takes.

    A file without words or blanks is read as numbers, and one with a single column as texts: a
    model of a table needs the names of their columns. Of a table, a model of texts takes the
    column of texts.
    """
    width = getattr(model, "n_features_in_", None)
    if takes_features_of_images(model):
        return data  # images, or features of them, whose number the model checks
    if is_of_tables(model):
        return with_located_images(model, _as_table(data), data.facts.get("folder", ""))
    if data.is_table and width is None:
        data, left_out = texts_alone(data, "the model")
        warnings.warn(left_out, LabelweaveWarning, stacklevel=2)
    if not data.is_table:  # what is wrong with its columns is said when they are checked
        check_width(data, width)
    return data


def with_located_images(
    model: Any, data: Dataset, folder: str | None, *, first_row: int | None = None
) -> Dataset:
    """The same rows, with relative paths of the model's columns of images from this folder.

    None stands for several folders, from which relative paths are refused. `first_row` is the
    number of the first row in messages, by default the one that it has in the frame.
    """
    if not data.is_table:
        return data
    columns = [c.name for c in model.input_columns() or () if c.kind == "image"]
    columns = [name for name in columns if name in data.X.frame]
    if not columns:
        return data
    frame = data.X.frame
    if first_row is not None:
        frame = frame.set_axis(range(first_row, first_row + len(frame)), axis=0)
    paths = {name: located(frame[name], folder) for name in columns}
    return replace(data, X=Table(frame.assign(**paths), data.X.encoder))


def texts_alone(data: Dataset, reader: str) -> tuple[Dataset, str]:
    """The column of texts of a table as texts, and a sentence about the columns that are left out.

    `reader` is what takes texts only, in words.
    """
    column = data.facts.get("text_column")
    if column is None:
        kinds = data.X.unfitted_encoder().fit(data.X.as_reported()).kinds_
        texts = kinds.loc[kinds["kind"] == "text", "column"].tolist()
        if len(texts) != 1:
            raise InputError(
                f"{reader} takes texts, but {data.name} has {len(texts)} columns of texts: name "
                "the one to use",
                parameter="text_column",
            )
        column = texts[0]
    others = [str(name) for name in data.X.frame.columns if name != column]
    cells = data.X.frame[column]
    texts = ["" if blank else str(cell) for cell, blank in zip(cells, cells.isna(), strict=True)]
    facts = {**data.facts, "text_column": column}
    said = (
        f"{reader} takes texts only: {column!r} is used, and {', '.join(map(repr, others))} "
        f"{'is' if len(others) == 1 else 'are'} left out"
    )
    return replace(data, X=texts, feature_names=None, facts=facts), said


def _as_table(data: Dataset) -> Dataset:
    if data.is_table or data.is_image:
        return data
    if data.is_text:
        import pandas as pd

        name = data.facts.get("text_column", "text")
        frame = pd.DataFrame({name: pd.Series(list(data.X), dtype=object)})
        return replace(data, X=Table(frame), feature_names=[name])
    if data.feature_names is None:
        return data
    return replace(data, X=Table(as_frame(data.X, list(data.feature_names))))


def column_rows(data: Dataset, model: Any) -> list[dict[str, str]]:
    """What becomes of each column of a table in a model: kind, what is made of it, why not."""
    output = "codes" if capabilities(model).categories else "one-hot"
    encoder = data.X.unfitted_encoder().set_params(output=output)
    encoder.fit(data.X.as_reported(), data.Y)
    rows = [
        {"column": row.column, "kind": row.kind, "made": row.made, "left_out": row.left_out}
        for row in encoder.kinds_.itertuples()
    ]
    for name, role in data.facts.get("not_features", {}).items():
        rows.append({"column": name, "kind": "", "made": "", "left_out": role})
    return rows

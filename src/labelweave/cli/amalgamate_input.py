"""What `labelweave amalgamate` reads: the teachers, wherever they are, and the rows for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelweave.exceptions import InputError

if TYPE_CHECKING:
    from labelweave.data import Dataset
    from labelweave.pipeline.model_folder import Origin
    from labelweave.scattered.teacher import Teacher

_HTTP = ("http://", "https://")


def read_input(
    sources: Sequence[str],
    data: str,
    reading: dict[str, Any],
    *,
    known_labels: bool,
    abstain: float,
    labels_of: Mapping[str, Sequence[str]],
    trusted: Sequence[str],
) -> tuple[Dataset, list[Teacher], dict[str, Any]]:
    """The rows, the teachers with the columns that each uses, and how the rows were read."""
    from labelweave.scattered.teacher import Teacher

    sources = [one for source in sources for one in _expanded(source)]
    if unknown := sorted({*labels_of, *trusted} - set(sources)):
        raise InputError(f"{unknown[0]} is not one of the teachers, which are {', '.join(sources)}")
    teachers: list[Teacher | None] = [
        None
        if _is_table(source)
        else Teacher(source, labels_of.get(source), abstain=abstain, trust=source in trusted)
        for source in sources
    ]
    origins = [_origin(source) for source in sources]
    leave = () if known_labels else ("labels", "label_column")
    trained = next((origin for origin in origins if origin.source), origins[0])
    reading = trained.reading_of(data, reading, leave=leave)
    rows = _rows(data, reading, teachers, origins, known_labels)
    for k, source in enumerate(sources):
        if teachers[k] is None:
            teachers[k] = _stored(source, rows, abstain)
    opened = [teacher for teacher in teachers if teacher is not None]
    wanted = rows.feature_names
    if wanted is not None and not rows.is_text:
        for teacher, origin in zip(opened, origins, strict=True):
            names = _columns_of(teacher, origin)
            if names is not None and list(names) != list(wanted):
                teacher.columns = [list(wanted).index(name) for name in names]
    return rows, opened, reading


def parse_labels_of(texts: Sequence[str]) -> dict[str, list[str]]:
    """`TEACHER=FILE`, or `TEACHER=a,b,c`, as the labels of each teacher."""
    from labelweave.data.label_files import read_label_file

    labels = {}
    for text in texts:
        teacher, equals, names = text.rpartition("=")
        if not equals or not teacher or not names.strip():
            raise InputError(f"--labels-of takes TEACHER=FILE or TEACHER=a,b,c, not {text!r}")
        is_file = Path(names).is_file()
        labels[teacher] = (
            list(read_label_file(names)) if is_file else [n.strip() for n in names.split(",")]
        )
    return labels


def _expanded(source: str) -> list[str]:
    """The addresses of the models of a service, for its root address; else the source itself."""
    from urllib.parse import urlsplit

    if not source.startswith(_HTTP) or urlsplit(source).path.strip("/"):
        return [source]
    from labelweave.scattered._amalgamation.remote_model import list_models

    models = list_models(source)
    if not models:
        raise InputError(f"{source} lists no models: name one, {source.rstrip('/')}/v2/models/NAME")
    return models


def _is_table(source: str) -> bool:
    return not source.startswith(_HTTP) and Path(source).suffix.lower() == ".csv"


def _origin(source: str) -> Origin:
    from labelweave.pipeline.model_folder import Origin, read_origin

    is_folder = not source.startswith(_HTTP) and Path(source).is_dir()
    return read_origin(Path(source)) if is_folder else Origin()


def _stored(source: str, rows: Dataset, abstain: float) -> Teacher:
    from labelweave.scattered._amalgamation.teacher_files import read_predictions
    from labelweave.scattered.teacher import Teacher

    predictions = read_predictions(Path(source), rows.row_ids, len(rows))
    name = Path(source).stem
    return Teacher.from_predictions(rows.X, predictions, name=name, abstain=abstain)


def _columns_of(teacher: Teacher | None, origin: Origin) -> Sequence[str] | None:
    """The names of the columns that a teacher was trained on; None if they are not known."""
    if origin.feature_names is not None:
        return origin.feature_names
    names = None if teacher is None else getattr(teacher.model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _rows(
    data: str,
    reading: dict[str, Any],
    teachers: Sequence[Teacher | None],
    origins: Sequence[Origin],
    known: bool,
) -> Dataset:
    from labelweave.data import Dataset
    from labelweave.data.catalog import is_catalog_name, load_dataset
    from labelweave.data.dataset import no_labels
    from labelweave.data.reading import iter_batches
    from labelweave.data.several_files import folder_of, resolve_files
    from labelweave.pipeline.data_parts import check_finite
    from labelweave.pipeline.model_input import is_of_tables, with_located_images
    from labelweave.rows import concatenate_features, count_rows

    wanted: list[str] = []
    for teacher, origin in zip(teachers, origins, strict=True):
        wanted += [name for name in _columns_of(teacher, origin) or () if name not in wanted]
    of_tables = [one.model for one in teachers if one is not None and is_of_tables(one.model)]
    if known or is_catalog_name(data):
        rows = _with_columns(load_dataset(data, **reading), wanted, data, is_table=bool(of_tables))
    else:
        widths = [getattr(one.model, "n_features_in_", None) for one in teachers if one is not None]
        batches = list(
            iter_batches(
                data,
                feature_names=wanted or None,
                n_features=None if wanted or not widths else widths[0],
                is_table=bool(of_tables),
                **reading,
            )
        )
        if not batches:
            raise InputError(f"{data} has no rows")
        ids = [i for one in batches for i in one.row_ids or ()] or None
        X = concatenate_features([one.X for one in batches])
        is_plain = batches[0].is_text or batches[0].is_image
        names = None if is_plain else wanted or batches[0].feature_names
        rows = Dataset(
            X, no_labels(count_rows(X)), batches[0].name, feature_names=names, row_ids=ids
        )
    if rows.is_table and not is_catalog_name(data):
        folder = folder_of(resolve_files(data))
        for model in of_tables:
            rows = with_located_images(model, rows, folder)
    elif not rows.is_table:
        check_finite(rows, data, names=wanted or None)
    return rows


def _with_columns(rows: Dataset, wanted: Sequence[str], data: str, *, is_table: bool) -> Dataset:
    """The same rows with these columns only, as a table of named columns if teachers need one."""
    from dataclasses import replace

    from labelweave.tables.table import Table, as_frame

    if rows.is_text or rows.is_image or rows.feature_names is None:
        return rows
    names = list(rows.feature_names)
    if is_table and not rows.is_table:
        rows = replace(rows, X=Table(as_frame(rows.X, names)))
    if not wanted:
        return rows
    if missing := [name for name in wanted if name not in names]:
        raise InputError(f"{data} has no feature {missing[0]!r}, which a teacher uses")
    X = (
        Table(rows.X.frame[list(wanted)], rows.X.encoder)
        if rows.is_table
        else rows.X[:, [names.index(name) for name in wanted]]
    )
    return replace(rows, X=X, feature_names=list(wanted))
